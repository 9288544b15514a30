"""What AWS bills for a month beside the agents, by estimate: volumes, public addresses, NAT gateways."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from autoscaler.domain.facts.costs import Estimates, MonthCosts
from autoscaler.domain.facts.metering import HOUR_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """One line of the bill, and how it was estimated. ``metered``: it is part of what was metered; else it comes on top."""

    name: str
    usd: float
    how: str
    metered: bool


def estimates_of(month: MonthCosts, given: Estimates, now: float) -> Iterator[Estimate]:
    """Yield what there is to say about a month; ``now``: it may not be over."""
    hours = month.parts.hours
    if month.parts.disk_usd:
        yield Estimate(name="volumes", usd=month.parts.disk_usd, how="by their sizes and volume_usd_per_gib_month", metered=True)
    if given.public_addresses:
        price = given.public_address_usd_per_hour
        yield Estimate(name="public addresses", usd=hours * price, how=f"{hours:,.1f} agent hours at ${price:g}", metered=False)
    if given.nat_gateways:
        usd, gib = given.nat_gateways * given.nat_gateway_usd_per_hour * _hours_of(month.name, now), hours * given.nat_gib_per_agent_hour
        how = f"{given.nat_gateways} at ${given.nat_gateway_usd_per_hour:g} an hour, {gib:,.0f} GiB at ${given.nat_usd_per_gib:g}"
        yield Estimate(name="NAT gateways", usd=usd + gib * given.nat_usd_per_gib, how=how, metered=False)


def _hours_of(month: str, now: float) -> float:
    """Return the hours of a month that have passed."""
    year, number = (int(part) for part in month.split("-"))
    begins = datetime(year, number, 1, tzinfo=UTC).timestamp()
    ends = datetime(year + number // 12, number % 12 + 1, 1, tzinfo=UTC).timestamp()
    return max(0.0, min(now, ends) - begins) / HOUR_SECONDS
