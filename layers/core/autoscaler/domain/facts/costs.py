"""What jobs cost: how a month's dollars are shared among them. Data, no decisions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class CostKey(NamedTuple):
    """Whose costs: a job of a controller in a pool. ``job``: as in its URL, ``FOLDER/*`` or ``*`` of several, ``@PERSON`` of a reservation.

    Jenkins allows neither of these signs in a name.
    """

    controller: str
    pool: str
    job: str


class Used(NamedTuple):
    """What a job had: dollars, and hours of executors."""

    usd: float = 0.0
    hours: float = 0.0

    def plus(self, other: "Used") -> "Used":
        """Add."""
        return Used(self.usd + other.usd, self.hours + other.hours)


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthParts:
    """What some of a month's metered dollars were for: boots, stopped agents, volumes of all."""

    boot_usd: float = 0.0
    stopped_usd: float = 0.0
    disk_usd: float = 0.0

    def plus(self, other: "MonthParts") -> "MonthParts":
        """Add."""
        return MonthParts(
            boot_usd=self.boot_usd + other.boot_usd,
            stopped_usd=self.stopped_usd + other.stopped_usd,
            disk_usd=self.disk_usd + other.disk_usd,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthCosts:
    """The dollars of a calendar month (UTC), as 2026-11, or of a day of it, as 2026-11-27.

    ``unused``: of agents on which nothing ran, by pool. ``metered_usd``: what all sums up to; ``parts``: of a month alone.
    """

    name: str
    used: Mapping[CostKey, Used] = field(default_factory=dict)
    unused: Mapping[str, float] = field(default_factory=dict)
    metered_usd: float = 0.0
    parts: MonthParts = field(default_factory=MonthParts)
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CostBatch:
    """What looks saw that is not in the month's costs yet.

    ``used``, ``unused``: at the prices that are expected. They say in which shares jobs have what the meter counted meanwhile.
    """

    month: str = ""
    seen_at: float = 0.0  # the last look
    opened_at: float = 0.0  # by the meter's time
    metered_at: float = 0.0  # what the meter said at the last look, and when it was written
    metered: Mapping[str, float] = field(default_factory=dict)  # dollars of the month by pool
    spent: Mapping[str, float] = field(default_factory=dict)  # of these, since the batch was opened
    used: Mapping[CostKey, Used] = field(default_factory=dict)
    unused: Mapping[str, float] = field(default_factory=dict)
    parts: MonthParts = field(default_factory=MonthParts)  # of the month, as the meter said at the last look
    version: int = 0
