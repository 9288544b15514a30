"""How old the carried prices are that a fleet goes by."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.wording import counted

# AWS changes the prices of a type seldom, and lists new types every few months.
OLD_PRICES_DAYS = 180
WAY_OUT = "make prices REGIONS=... fetches today's; usd_per_hour of a pool says what is really paid"


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceAge:
    """Prices that AWS listed on one day, and the pools that go by them."""

    listed_on: str
    days: int
    pools: tuple[str, ...]

    @property
    def old(self) -> bool:
        """They may not be today's any more."""
        return self.days > OLD_PRICES_DAYS

    @property
    def told(self) -> str:
        """Say it in one line; no age if the clock is before that day, as in a replay."""
        age = f", {counted(self.days, 'day')} old" if self.days >= 0 else ""
        return f"prices of {self.listed_on}{age}: {', '.join(self.pools)}"


def price_ages(fleet: Fleet, now: float) -> Iterator[PriceAge]:
    """Yield the days of all prices, the oldest first; nothing of pools that say what they pay."""
    today = datetime.fromtimestamp(now, UTC).date()
    for day in sorted({*fleet.prices_listed_on.values()}):
        pools = tuple(name for name, listed_on in fleet.prices_listed_on.items() if listed_on == day)
        yield PriceAge(listed_on=day, days=(today - date.fromisoformat(day)).days, pools=pools)
