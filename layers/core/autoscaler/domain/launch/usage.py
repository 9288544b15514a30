"""Usage of one level's limits, and the room that is kept within them for those whose turn it is."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from autoscaler.domain.facts.metering import HOUR_SECONDS, Level, LevelKind
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.wording import figure, figures_apart

# Within the month's limit an agent is reserved for this long: a build that has begun is never cut short to save money.
MONTH_RESERVE_SECONDS = 3600.0
# Likewise within the hours of a day.
DAY_RESERVE_HOURS = 1.0
_AGENTS = {LevelKind.POOL: Reason.MAX_AGENTS, LevelKind.TEAM: Reason.TEAM_MAX_AGENTS, LevelKind.FLEET: Reason.FLEET_MAX_AGENTS}
_FILLS = (Reason.USD_PER_MONTH, Reason.HOURS_PER_DAY)
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRoom:
    """Room that is kept in one pass. ``agents``: of each pool, each at ``usd_per_hour`` at the most.

    ``saved``: dollars an hour that are left for an agent which does not fit yet, by level; ``first``: who goes first there.
    """

    agents: Mapping[str, int] = field(default_factory=dict)
    usd_per_hour: Mapping[str, float] = field(default_factory=dict)
    saved: Mapping[str, float] = field(default_factory=dict)
    first: Mapping[str, str] = field(default_factory=dict)


NOTHING_KEPT = KeptRoom()


class _Projected(NamedTuple):
    """What a limit would be used for, by what there is and by what room is kept, after a launch. A tuple: placing a queue makes many."""

    reason: Reason
    used: float
    kept: float
    limit: float
    unit: str


@dataclass(slots=True, kw_only=True)
class Usage:
    """What is used of the limits of one level. ``kept_...``: room that others may not take."""

    level: Level
    agents: int
    launched: int
    usd_per_hour: float
    usd_in_month: float
    hours_in_day: float = 0.0
    kept_agents: int = 0
    kept_usd_per_hour: float = 0.0
    first: str = ""

    def copied(self) -> "Usage":
        """Return another one of the same figures; each budget has its own, and `dataclasses.replace` takes five times as long."""
        return Usage(
            level=self.level,
            agents=self.agents,
            launched=self.launched,
            usd_per_hour=self.usd_per_hour,
            usd_in_month=self.usd_in_month,
            hours_in_day=self.hours_in_day,
        )

    def count(self, agents: int, usd_per_hour: float) -> None:
        """Count agents without a record, each at this price."""
        self.agents += agents
        self.usd_per_hour += agents * usd_per_hour

    def keep_room(self, kept: KeptRoom) -> None:
        """Keep room for the pools whose turn it is."""
        mine = {pool: agents for pool, agents in kept.agents.items() if self.level.has(pool)}
        self.kept_agents = sum(mine.values())
        self.kept_usd_per_hour = sum(agents * kept.usd_per_hour[pool] for pool, agents in mine.items())
        self.kept_usd_per_hour += kept.saved.get(self.level.text, 0.0)
        self.first = kept.first.get(self.level.text, "another pool goes first")

    def take(self, agents: int, usd_per_hour: float) -> None:
        """Reserve agents that are launched, each at this price."""
        self.count(agents, usd_per_hour)
        self.launched += agents
        self.usd_in_month += month_reserve(agents * usd_per_hour)

    def use_kept(self, agents: int, usd_per_hour: float) -> None:
        """Give up room that was kept, so that they may take it for whom it was."""
        self.kept_agents -= agents
        self.kept_usd_per_hour -= agents * usd_per_hour

    def refusal(self, usd_per_hour: float, kept_usd_per_hour: float | None) -> tuple[Reason, str] | None:
        """Name the limit that forbids one more agent at this price. ``kept_...``: the price at which room is kept for it, if it is."""
        mine = (0, 0.0) if kept_usd_per_hour is None else (1, kept_usd_per_hour)
        for one in self._with_more(1, usd_per_hour, *mine):
            if one.used > one.limit + ROUNDING:
                used, limit = figures_apart(one.used, one.limit)
                return one.reason, f"one more would make {used} {one.unit} in {self.level.text}, the limit is {limit}"
            if one.used + one.kept > one.limit + ROUNDING:
                return Reason.NOT_ITS_TURN, f"{self.first}; the limit is {figure(one.limit)} {one.unit} in {self.level.text}"
        return None

    def leaves_room(self, parts: int, usd_per_hour: float) -> bool:
        """Tell whether one more agent would use at most one of so many parts; month and day only fill, and do not count."""
        return all(parts * (one.used + one.kept) <= one.limit for one in self._with_more(1, usd_per_hour) if one.reason not in _FILLS)

    def has_room_for(self, agents: int, usd_per_hour: float) -> bool:
        """Tell whether so many more agents at this price fit."""
        return all(one.used + one.kept <= one.limit for one in self._with_more(agents, usd_per_hour))

    def _with_more(self, agents: int, usd_per_hour: float, kept: int = 0, kept_usd_per_hour: float = 0.0) -> Iterator[_Projected]:
        """Project the use of each limit after so many more agents at this price. ``kept...``: the room that is kept for these."""
        limits, usd, for_others = self.level.ceilings, agents * usd_per_hour, self.kept_agents - kept
        others_usd = max(0.0, self.kept_usd_per_hour - kept_usd_per_hour)
        yield _Projected(_AGENTS[self.level.kind], self.agents + agents, for_others, limits.max_agents, "agents")
        yield _Projected(Reason.LAUNCH_RATE, self.launched + agents, for_others, limits.max_launches_per_hour, "launches within the hour")
        yield _Projected(Reason.USD_PER_HOUR, self.usd_per_hour + usd, others_usd, limits.max_usd_per_hour, "dollars per hour")
        month = self.usd_in_month + month_reserve(usd)
        yield _Projected(Reason.USD_PER_MONTH, month, month_reserve(others_usd), limits.max_usd_per_month, "dollars in the month")
        hours = self.hours_in_day + (self.agents + agents) * DAY_RESERVE_HOURS
        yield _Projected(Reason.HOURS_PER_DAY, hours, for_others * DAY_RESERVE_HOURS, limits.max_hours_per_day, "hours in the day")


def month_reserve(usd_per_hour: float) -> float:
    """How much of the month's money is reserved for agents of this price together."""
    return usd_per_hour * MONTH_RESERVE_SECONDS / HOUR_SECONDS
