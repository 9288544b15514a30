"""The carried price lists, and the keys by which a fleet file says which of them it goes by, and what is paid of them."""

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field

from autoscaler.config.basics import Section
from autoscaler.domain.facts.fleet import Platform, Pool

if TYPE_CHECKING:
    from autoscaler.config.settings import FleetSettings

HOME = "us-east-1"
_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-\d")


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(files("autoscaler").joinpath("prices.json").read_text(encoding="utf-8"))
    return table


def carried_prices(region: str = HOME) -> dict[str, dict[str, float]]:
    """Return on-demand dollars per hour by instance type and operating system (``make prices`` made the table)."""
    prices: dict[str, dict[str, float]] = _table()["usd_per_hour"].get(region, {})
    return prices


def listed_on(region: str, system: str) -> str:
    """Return the day on which AWS listed these prices, as ``2026-07-20``; "" where none are carried."""
    return str(_table()["listed_on"].get(region, {}).get(system, ""))


def _carried(region: str) -> str:
    if not _REGION.fullmatch(region):
        raise ValueError(f"({region}) is no AWS region")
    if not carried_prices(region):
        known = ", ".join(sorted(_table()["usd_per_hour"]))
        raise ValueError(f"({region}) no prices of it are carried, only of {known}: run make prices REGIONS={region}, or set usd_per_hour")
    return region


class PriceSettings(Section):
    """Which of the carried prices a pool goes by, and what is paid of them. Keys that a pool does not set are those of defaults."""

    multiplier: Annotated[float, Field(gt=0, le=10, allow_inf_nan=False)] | None = Field(
        None,
        description="What is paid of the list price on demand: 0.72 where a Savings Plan or a contract takes 28 % off. Limits, decisions "
        "and costs go by it. Not for spot, and not for usd_per_hour, which is what is paid. Default: 1.",
    )
    region: Annotated[str, AfterValidator(_carried)] | None = Field(
        None, description=f"AWS region of the prices; it must be one that is carried. Default: {HOME}."
    )
    system: Literal["linux", "windows", "rhel", "suse"] | None = Field(
        None, description="Operating system that is billed, where it is not what platform says: rhel and suse cost more than linux."
    )


PricesKey = Annotated[
    PriceSettings | None,
    Field(description="Which of the carried prices a pool goes by, and what is paid of them. Default: those of us-east-1, in full."),
]


class PriceList:
    """The prices that one pool goes by."""

    def __init__(self, own: PriceSettings | None, default: PriceSettings | None, platform: Platform) -> None:
        """Take each key from the pool, or from ``defaults``."""
        told = [given for given in (own, default) if given is not None]
        self.region = next((one.region for one in told if one.region is not None), HOME)
        self.multiplier = next((one.multiplier for one in told if one.multiplier is not None), 1.0)
        self.system: str = next((one.system for one in told if one.system is not None), str(platform))

    def usd(self, instance_type: str) -> float:
        """Return the list price on demand; 0 where none is carried."""
        return carried_prices(self.region).get(instance_type, {}).get(self.system) or 0.0

    @property
    def types(self) -> list[str]:
        """Return the types whose price is carried."""
        return [kind for kind, prices in carried_prices(self.region).items() if prices.get(self.system)]


def price_list_of(settings: "FleetSettings", pool: str) -> PriceList:
    """Return the prices that a pool goes by."""
    own = settings.pools[pool]
    return PriceList(own.prices, settings.defaults.prices, own.platform)


def listed_days(settings: "FleetSettings", pools: Mapping[str, Pool]) -> dict[str, str]:
    """Return the day of the prices of each of these pools that goes by carried ones."""
    named = [name for name, pool in pools.items() if settings.pools[name].usd_per_hour is None and not pool.of_hosts]
    lists = {name: price_list_of(settings, name) for name in named}
    return {name: listed_on(one.region, one.system) for name, one in lists.items()}
