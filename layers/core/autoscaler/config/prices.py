"""Prices of a pool's machines: those of its price list, spot's discount, and volumes."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from autoscaler.config.price_list import PriceList
from autoscaler.config.problems import MOST_PROBLEMS, FleetFileError, Problem
from autoscaler.domain.facts.fleet import Fleet, Market, Offering, Platform
from autoscaler.domain.facts.pools import HOURS_A_MONTH

if TYPE_CHECKING:
    from autoscaler.config.settings import PoolSettings

# As the stack's own launch templates have it; gp3 in us-east-1 is $0.08 a GiB and month.
VOLUME_GIB = {Platform.LINUX: 100.0, Platform.WINDOWS: 150.0}
_MARKETS = {"on-demand": [Market.ON_DEMAND], "spot": [Market.SPOT], "spot-then-on-demand": [Market.SPOT, Market.ON_DEMAND]}


def offerings(
    name: str, pool: "PoolSettings", types: Sequence[str], prices: dict[str, float | None], listed: PriceList
) -> tuple[Offering, ...]:
    """Return what a pool may launch, of these types in order of preference; `FleetFileError` names those whose price is not known."""
    if unknown := tuple(islice(_unpriced(name, pool, types, listed), MOST_PROBLEMS)):
        raise FleetFileError("", unknown)
    volume = gib_of(pool, prices) * (prices["volume_usd_per_gib_month"] or 0.0) / HOURS_A_MONTH
    return tuple(
        Offering(
            instance_type=instance_type,
            subnet=subnet,
            market=market,
            volume_usd_per_hour=volume,
            **_machine_prices(pool, listed, instance_type, market, prices),
        )
        for market in _MARKETS[pool.market]
        for instance_type in types
        for subnet in pool.subnets or [""]
    )


def counted_volumes(pool: "PoolSettings", prices: dict[str, float | None]) -> dict[str, float | None]:
    """Return how large volumes are, and what a GiB costs if EC2's sizes count: unless the fleet file says a size."""
    per_gib = prices["volume_usd_per_gib_month"] if prices["volume_gib"] is None else None
    return {"volume_gib": gib_of(pool, prices), "volume_usd_per_gib_month": per_gib}


def gib_of(pool: "PoolSettings", prices: dict[str, float | None]) -> float:
    """Return how large the volumes of an agent are together, as the fleet file says."""
    gib = prices["volume_gib"]
    return VOLUME_GIB[pool.platform] if gib is None else gib


def unaffordable_minima(fleet: Fleet) -> Iterator[Problem]:
    """Yield a problem where the minima alone cost more an hour than the limits allow, each at its cheapest."""
    minima = [pool for pool in fleet.pools.values() if pool.min_agents]
    usd = sum(pool.min_agents * cheapest(pool.offerings) for pool in minima)
    if usd > fleet.limits.max_usd_per_hour:
        names = ", ".join(pool.name for pool in minima)
        text = f"the pools' min_agents ({names}) together cost ${usd:,.2f} an hour, which exceeds limits.max_usd_per_hour"
        yield Problem(place=("limits", "max_usd_per_hour"), text=f"{text} (${fleet.limits.max_usd_per_hour:,.2f})")


def cheapest(offered: tuple[Offering, ...]) -> float:
    """Return the lowest price that the limits reserve for one agent."""
    return min(offering.reserved_usd_per_hour for offering in offered)


def _unpriced(name: str, pool: "PoolSettings", types: Sequence[str], listed: PriceList) -> Iterator[Problem]:
    key = "instance_types" if pool.instance_types else "instance_requirements"
    for number, instance_type in enumerate(types if pool.usd_per_hour is None else ()):
        if not listed.usd(instance_type):
            from autoscaler.config.words import meant  # noqa: PLC0415 - for an error only

            rule = f"no {listed.system} price is carried for it, set usd_per_hour{meant(instance_type, listed.types)}"
            place = ("pools", name, key, number) if pool.instance_types else ("pools", name, key)
            yield Problem(place=place, text=f"pools.{name}.{key} ({instance_type}): {rule}")


def _machine_prices(
    pool: "PoolSettings", listed: PriceList, instance_type: str, market: Market, prices: dict[str, float | None]
) -> dict[str, Any]:
    """Return the expected and the highest price. The highest of spot is the maximum that is sent, or the on-demand price."""
    usd = listed.usd(instance_type)
    if market is Market.ON_DEMAND:
        return {"usd_per_hour": pool.usd_per_hour or usd * listed.multiplier}
    expected = pool.usd_per_hour or usd * (1 - (prices["spot_discount"] or 0.0))
    most = prices["spot_max_usd_per_hour"]
    if most is None:
        return {"usd_per_hour": expected, "most_usd_per_hour": max(expected, usd)}
    return {"usd_per_hour": min(expected, most), "most_usd_per_hour": most, "spot_max_usd_per_hour": most}
