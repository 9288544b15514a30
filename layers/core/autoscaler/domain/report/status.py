"""The state of the fleet for a person: queue, agents and executors by pool, limits used, pauses and why."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from types import MappingProxyType

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.telemetry import Reports
from autoscaler.domain.launch.budget import Budget
from autoscaler.domain.report.controllers import told_others
from autoscaler.domain.report.limits import LimitsUsed, in_turn, limits_used, told_unread
from autoscaler.domain.report.listing import told_short, words_of
from autoscaler.domain.report.machines import StoppedAgents, stopped_agents, told_images, usd_per_hour_together
from autoscaler.domain.report.overdue import left_behind
from autoscaler.domain.report.waiting import BrokenPool, broken_pool, why_paused
from autoscaler.domain.scale_in.make_room import what_holds
from autoscaler.domain.scale_in.replace import midnight_before
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.bets import steps_that_keep_failing, told_failing
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolStatus:
    """One pool on one controller. ``agents``: by the word for their state, without those that are ``off``, of which the disks alone cost.

    ``paused``: why nothing, or one agent at a time, is launched there, or "". ``off`` None: no agent is stopped there.
    """

    controller: str
    pool: str
    starved: int
    longest_wait_seconds: float
    agents: Mapping[str, int]
    executors: int
    busy: int
    max_agents: int
    usd_per_hour: float
    off: StoppedAgents | None
    paused: str
    broken: BrokenPool | None
    images: tuple[str, ...]  # which run there, which is launched, and which is tried, a sentence each
    short: tuple[str, ...]  # agents that are short of memory or disk, a sentence each


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The whole fleet. ``problems``: of controllers that were not read completely, or in parts; ``failing``: steps that keep failing.

    ``without_jobs``: controllers that show not a single job, as they do without Job/Read. ``unread``: what our own state has and
    this version cannot read. ``limits``: of teams, and of pools that have their own. ``turns``: teams, as they go first where a limit keeps
    several waiting. ``stopped``: what the month's limit holds, or "". ``told``: what people were told of, and that is not over.
    ``left``: agents whose pool, controller or host left the fleet file. ``nobody_told``: why alarms reach nobody, or "".
    ``results``: how many of the day's builds count in `BuildsSucceeded` and `BuildsFailed`, or "" if all do.
    """

    pools: tuple[PoolStatus, ...]
    problems: Mapping[str, str]
    failing: tuple[str, ...]
    without_jobs: tuple[str, ...]
    unread: tuple[str, ...]
    unservable: int
    unclear: int
    agents: int
    max_agents: int
    launches_in_the_hour: int
    max_launches_per_hour: int
    usd_per_hour: float
    reserved_usd_per_hour: float
    max_usd_per_hour: float
    usd_in_the_month: float
    max_usd_per_month: float
    limits: tuple[LimitsUsed, ...]
    turns: tuple[str, ...]
    stopped: str
    told: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    nobody_told: str = ""
    results: str = ""


def status_of(situation: Situation, reports: Reports = MappingProxyType({})) -> Status:
    """Build the status from a situation. ``reports``: what machines told last."""
    room, limits = Budget(situation), situation.fleet.limits
    return Status(
        pools=tuple(_pool(situation, pool, reports) for pool in situation.pools.values()),
        problems=dict(_problems(situation)),
        failing=tuple(told_failing(key, one, situation.now) for key, one in sorted(steps_that_keep_failing(situation.memory).items())),
        without_jobs=tuple(view.name for view in situation.snapshot.controllers.values() if not view.shows_jobs),
        unread=tuple(told_unread(situation.snapshot)),
        unclear=sum(len(demand.unknown) for demand in situation.demands.values()),
        unservable=sum(len(demand.unmet) for demand in situation.demands.values()),
        agents=room.fleet.agents,
        max_agents=limits.max_agents,
        launches_in_the_hour=room.fleet.launched,
        max_launches_per_hour=limits.max_launches_per_hour,
        usd_per_hour=round(usd_per_hour_together(situation, situation.snapshot.living), 4),
        reserved_usd_per_hour=round(room.fleet.usd_per_hour, 4),
        max_usd_per_hour=limits.max_usd_per_hour,
        usd_in_the_month=round(situation.memory.month.usd, 2),
        max_usd_per_month=limits.max_usd_per_month,
        limits=limits_used(situation, room),
        turns=tuple(team.text for team in in_turn(situation)),
        stopped="; ".join(what_holds(situation, level) for level in situation.stopped_levels),
        left=left_behind(situation),
        results=_results(situation),
    )


def _results(situation: Situation) -> str:
    """Say of how many builds and stages the result was counted today: what was aborted, or nobody could tell, has none."""
    counts = (learned.ends for learned in situation.snapshot.learned.values())
    today = [count for count in counts if count.day_at == midnight_before(situation.now)]
    ended, counted_ends = sum(count.ended for count in today), sum(count.counted for count in today)
    if counted_ends >= ended:
        return ""
    several = counted(ended, "build or stage", "builds and stages")
    return f"results are known of {counted_ends} of the {several} that ended since midnight UTC"


def _problems(situation: Situation) -> Iterator[tuple[str, str]]:
    for view in situation.snapshot.controllers.values():
        of_one = [view.problem or view.in_parts] if view.in_parts or not view.complete else []
        if of_one := [*of_one, *told_others(situation, view)]:
            yield view.name, "; ".join(filter(None, of_one))


def _busy(agent: Agent) -> int:
    """Count the executors that builds take: a build that Jenkins runs beside them (one-off) takes none of them."""
    return min(agent.taken_executors, agent.executors)


def _pool(situation: Situation, pool: PoolView, reports: Reports) -> PoolStatus:
    return PoolStatus(
        controller=pool.controller,
        pool=pool.name,
        starved=situation.starved[pool.controller].get(pool.name, 0),
        longest_wait_seconds=max(situation.demands[pool.controller].waits_for(pool.name), default=0.0),
        agents=dict(words_of(situation, (agent for agent in pool.agents if not situation.snapshot.is_off(agent.record)))),
        # Those that take builds, and of an agent out of use those that still run some.
        executors=sum(agent.executors if agent.phase is Phase.READY else _busy(agent) for agent in pool.agents),
        busy=sum(_busy(agent) for agent in pool.agents),
        max_agents=pool.spec.max_agents,
        usd_per_hour=round(usd_per_hour_together(situation, (agent.record for agent in pool.agents if not agent.instance_ended)), 4),
        off=stopped_agents(situation, pool),
        paused=why_paused(situation, pool),
        broken=broken_pool(situation, pool.name),
        images=tuple(told_images(situation, pool)),
        short=tuple(told_short(situation, pool, reports)),
    )


# How old the carried prices are that a fleet goes by.


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
