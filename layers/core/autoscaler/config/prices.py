"""Prices of a pool's machines: the carried on-demand table, spot's discount, and root volumes."""

import json
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from autoscaler.config.problems import FleetFileError, Problem
from autoscaler.domain.facts.fleet import Fleet, Market, Offering, Platform

if TYPE_CHECKING:
    from autoscaler.config.settings import PoolSettings

# As the stack's own launch templates have it; gp3 in us-east-1 is $0.08 a GiB and month. A month is 730 hours to AWS.
VOLUME_GIB = {Platform.LINUX: 100.0, Platform.WINDOWS: 150.0}
HOURS_A_MONTH = 730.0
_MARKETS = {"on-demand": [Market.ON_DEMAND], "spot": [Market.SPOT], "spot-then-on-demand": [Market.SPOT, Market.ON_DEMAND]}


def offerings(name: str, pool: "PoolSettings", types: Sequence[str], prices: dict[str, float | None]) -> tuple[Offering, ...]:
    """Return what a pool may launch, of these types in order of preference; `FleetFileError` names those whose price is not known."""
    if unknown := tuple(_unpriced(name, pool)):
        raise FleetFileError("", unknown)
    gib = prices["volume_gib"]
    volume = (VOLUME_GIB[pool.platform] if gib is None else gib) * (prices["volume_usd_per_gib_month"] or 0.0) / HOURS_A_MONTH
    return tuple(
        Offering(
            instance_type=instance_type,
            subnet=subnet,
            market=market,
            volume_usd_per_hour=volume,
            **_machine_prices(pool, instance_type, market, prices),
        )
        for market in _MARKETS[pool.market]
        for instance_type in types
        for subnet in pool.subnets or [""]
    )


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


@cache
def carried_prices() -> dict[str, dict[str, float]]:
    """Return on-demand dollars per hour by instance type and platform (``make prices`` made the table)."""
    text = files("autoscaler").joinpath("prices.json").read_text(encoding="utf-8")
    prices: dict[str, dict[str, float]] = json.loads(text)["usd_per_hour"]
    return prices


def _unpriced(name: str, pool: "PoolSettings") -> Iterator[Problem]:
    for number, instance_type in enumerate(pool.instance_types or () if pool.usd_per_hour is None else ()):
        if not _listed(pool, instance_type):
            from autoscaler.config.words import meant  # noqa: PLC0415 - for an error only

            known = [kind for kind, prices in carried_prices().items() if prices.get(str(pool.platform))]
            rule = f"no {pool.platform} price is carried for it, set usd_per_hour{meant(instance_type, known)}"
            yield Problem(place=("pools", name, "instance_types", number), text=f"pools.{name}.instance_types ({instance_type}): {rule}")


def _listed(pool: "PoolSettings", instance_type: str) -> float:
    return carried_prices().get(instance_type, {}).get(str(pool.platform)) or 0.0


def _machine_prices(pool: "PoolSettings", instance_type: str, market: Market, prices: dict[str, float | None]) -> dict[str, Any]:
    """Return the expected and the highest price. The highest of spot is the maximum that is sent, or the on-demand price."""
    if market is Market.ON_DEMAND:
        return {"usd_per_hour": pool.usd_per_hour or _listed(pool, instance_type)}
    expected = pool.usd_per_hour or _listed(pool, instance_type) * (1 - (prices["spot_discount"] or 0.0))
    most = prices["spot_max_usd_per_hour"]
    if most is None:
        return {"usd_per_hour": expected, "most_usd_per_hour": max(expected, _listed(pool, instance_type))}
    return {"usd_per_hour": min(expected, most), "most_usd_per_hour": most, "spot_max_usd_per_hour": most}
