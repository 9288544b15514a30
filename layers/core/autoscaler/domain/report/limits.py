"""Limits and schedules of pools and teams: how much is used, who is told of it, and what holds now and next."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, tzinfo
from itertools import islice
from math import inf
from typing import Any

from autoscaler.domain.facts.fleet import NO_CEILINGS, AtMonthLimit, Fleet, Pool, PoolSchedule, Team, WarmPool
from autoscaler.domain.facts.metering import (
    SHARE_SECONDS,
    Level,
    LevelKind,
    hours_in_day,
    levels_out_of_hours,
    spent_in_month,
    spent_lately,
    spent_levels,
    teams,
)
from autoscaler.domain.facts.pools import Span, moment, now_and_next, numbers_of
from autoscaler.domain.facts.snapshot import Snapshot
from autoscaler.domain.gate import is_drain_overdue
from autoscaler.domain.launch.budget import Budget, Usage
from autoscaler.domain.launch.turns import order_of, spent_for_weight
from autoscaler.domain.report.datum import NONE, PERCENT, Datum, one
from autoscaler.domain.report.machines import hosts_away, usd_per_hour_together
from autoscaler.domain.report.told import Seen
from autoscaler.domain.scale_in.make_room import what_holds
from autoscaler.domain.situation.bets import TrialOf, steps_that_keep_failing, trials_of
from autoscaler.domain.situation.pool_view import lead_seconds
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.states import REFUSED, in_state
from autoscaler.domain.wording import dollars, duration


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsUsed:
    """A team, or a pool with limits of its own, and how much of each limit is used; a limit that is not there is None.

    ``share``: what the team has spent lately, against its weight; "" of a pool. ``stopped``: what its month's limit holds, or "".
    """

    whose: str
    pools: tuple[str, ...]
    agents: int
    max_agents: float | None
    launches_in_the_hour: int
    max_launches_per_hour: float | None
    reserved_usd_per_hour: float
    max_usd_per_hour: float | None
    usd_in_the_month: float
    max_usd_per_month: float | None
    share: str
    stopped: str


def limits_used(situation: Situation, room: Budget) -> tuple[LimitsUsed, ...]:
    """Describe the limits of all teams, and of the pools that have any beside their agents."""
    shares = {team.text: _share(situation, team) for team in situation.fleet.teams.values()}
    pools = [use.level for use in room.levels if use.level.kind is LevelKind.POOL]
    limited = {level.name for level in pools if replace(level.ceilings, max_agents=inf, max_hours_per_day=inf) != NO_CEILINGS}
    return tuple(
        LimitsUsed(
            whose=use.level.text,
            pools=tuple(sorted(use.level.pools)),
            agents=use.agents,
            max_agents=_limit(use.level.ceilings.max_agents),
            launches_in_the_hour=use.launched,
            max_launches_per_hour=_limit(use.level.ceilings.max_launches_per_hour),
            reserved_usd_per_hour=round(use.usd_per_hour, 4),
            max_usd_per_hour=_limit(use.level.ceilings.max_usd_per_hour),
            usd_in_the_month=round(spent_in_month(situation.memory.month, use.level), 2),
            max_usd_per_month=_limit(use.level.ceilings.max_usd_per_month),
            share=shares.get(use.level.text, ""),
            stopped=what_holds(situation, use.level) if use.level in situation.stopped_levels else "",
        )
        for use in room.levels
        if use.level.kind is LevelKind.TEAM or (use.level.kind is LevelKind.POOL and use.level.name in limited)
    )


def _limit(value: float) -> float | None:
    return None if value == inf else value


def _share(situation: Situation, team: Team) -> str:
    usd, for_weight = spent_lately(situation.memory.fleet.lately, team.pools), spent_for_weight(situation, team)
    weighed = f", {dollars(for_weight)} for its weight of {team.weight:g}" if usd != for_weight else ""
    return f"{dollars(usd)} in the last {duration(SHARE_SECONDS)}{weighed}"


def in_turn(situation: Situation) -> list[Team]:
    """Order the teams as they go first where a limit keeps several waiting."""
    several = [team for team in teams(situation.fleet) if team.pools] if situation.fleet.teams else []
    order = order_of(situation, several)
    return sorted(several, key=lambda team: order.key(team.name))


def held_back(situation: Situation) -> list[Usage]:
    """Find the fleet and the teams whose jobs wait for more agents than boot, and whose limits leave no room for one more."""
    if not any(situation.starved[controller] for controller in situation.demands):
        return []
    shared = [use for use in Budget(situation).levels if use.level.kind is not LevelKind.POOL and _waits(situation, use.level)]
    return [use for use in shared if use.refusal(cheapest_of(situation.fleet, use.level), None) is not None]


def agents_used(situation: Situation, room: Budget) -> Iterator[tuple[Level, float]]:
    """Say how much of its agents each pool and the fleet has, in per cent: all of them only if jobs wait for more than boot."""
    for use in room.levels:
        if use.level.kind is not LevelKind.TEAM:
            # A pool that a person has set to no agents at all uses nothing of its limit, unless some are left.
            percent = 100.0 * use.agents / max(use.level.ceilings.max_agents, 1)
            yield use.level, percent if percent < 100 or _waits(situation, use.level) else 99.0


def cheapest_of(fleet: Fleet, level: Level) -> float:
    """Return the least that one more agent there may cost an hour, at its highest price."""
    pools = (pool for name, pool in fleet.pools.items() if level.has(name))
    return min((offering.reserved_usd_per_hour for pool in pools for offering in pool.offerings), default=0.0)


def _waits(situation: Situation, level: Level) -> bool:
    """Tell whether more jobs wait than agents that boot have executors: jobs that wait for these wait for no limit."""
    starved = (situation.starved[controller] for controller in situation.demands)
    waiting = sum(count for by_pool in starved for pool, count in by_pool.items() if level.has(pool))
    boots = (agent for agent in situation.agents if agent.phase.boots and level.has(agent.pool.name))
    return waiting > sum(agent.pool.executors for agent in boots)


def measure_teams(situation: Situation, room: Budget) -> Iterator[Datum]:
    """Describe the dollars of each team. Only fleets with teams pay for it."""
    for use in (use for use in room.levels if use.level.kind is LevelKind.TEAM):
        level, limits = use.level, use.level.ceilings
        dimensions = (("Fleet", situation.fleet.name), ("Team", level.name))
        usd_per_hour = usd_per_hour_together(situation, (record for record in situation.snapshot.living if level.has(record.pool)))
        month = spent_in_month(situation.memory.month, level)
        yield one("UsdPerHour", usd_per_hour, NONE, dimensions)
        yield one("UsdMonth", month, NONE, dimensions)
        if limits.max_usd_per_hour < inf:
            yield one("UsdPerHourUsedPercent", 100.0 * use.usd_per_hour / limits.max_usd_per_hour, PERCENT, dimensions)
        if limits.max_usd_per_month < inf:
            yield one("UsdMonthUsedPercent", 100.0 * month / limits.max_usd_per_month, PERCENT, dimensions)


# Limits that people are told of: the month's money, the day's hours, and what keeps the jobs of a team or of the fleet waiting.


def limits_seen(situation: Situation) -> Iterator[tuple[str, Seen]]:
    """Name the limits that are reached, each with its message."""
    for level in spent_levels(situation.memory.month, situation.fleet, situation.now):
        spent, limit = spent_in_month(situation.memory.month, level), level.ceilings.max_usd_per_month
        stops = situation.fleet.limits.at_month_limit is AtMonthLimit.STOP
        there = "" if level.kind is LevelKind.FLEET else f"In {level.text}: "
        then = "Agents are drained and nothing is launched" if stops else "Nothing is launched, agents that run go on"
        text = f"{there}${spent:,.2f} of ${limit:,g} are spent.\n{then} until the month (UTC) ends or the limit is raised."
        title = f"the month's limit{_of(level)} is reached"
        yield f"limit/usd-per-month{_of(level, '/')}", Seen(title, text, "operations.md#usd-per-month", "autoscaler status")
    for level in levels_out_of_hours(situation.memory.fleet.day, situation.fleet, situation.now):
        hours = hours_in_day(situation.memory.fleet.day, level, situation.now)
        text = (
            f"The agents of {level.text} have run {hours:,.1f} of {level.ceilings.max_hours_per_day:,g} hours today.\n"
            "None is launched and none takes another build until midnight UTC; running builds go on."
        )
        title = f"the day's hours{_of(level)} are used"
        yield f"limit/hours-per-day{_of(level, '/')}", Seen(title, text, "schedules.md#hours-a-day", "autoscaler status")
    # The limits that leave no room for one more agent, but for that of the month, which has its own message.
    for use in held_back(situation):
        level, limits, of = use.level, use.level.ceilings, _of(use.level)
        usd, agents = use.usd_per_hour + cheapest_of(situation.fleet, level), f"{use.agents} agents are there"
        launched = f"{use.launched} agents were launched within the hour"
        cost = f"the agents cost up to ${use.usd_per_hour:,.2f} an hour"
        for name, key, with_one_more, most, told, heading in (
            ("agents", "max_agents", use.agents + 1, limits.max_agents, agents, "agents-limit"),
            ("launch-rate", "max_launches_per_hour", use.launched + 1, limits.max_launches_per_hour, launched, "launch-rate"),
            ("usd-per-hour", "max_usd_per_hour", usd, limits.max_usd_per_hour, cost, "usd-per-hour"),
        ):
            if with_one_more > most:
                text = f"Jobs{of} wait, {told}, and {key} ({most:g}) leaves no room for another one."
                runbook = f"operations.md#{'team-limits' if of else heading}"
                yield f"limit/{name}{_of(level, '/')}", Seen(f"the limit {key}{of} is reached", text, runbook, "autoscaler plan")


def _of(level: Level, word: str = " of ") -> str:
    """Name a team or a pool after a word; nothing of the whole fleet."""
    return "" if level.kind is LevelKind.FLEET else f"{word}{level.text}"


# Where a metric of the whole fleet comes from: the names of agents, pools, controllers and steps behind it.


def places_of(situation: Situation, data: Sequence[Datum]) -> dict[str, list[str]]:
    """Name them by metric; idle agents by pool, the dearest first."""
    idle = {dict(one.dimensions)["Pool"]: sum(one.values) for one in data if one.name == "IdleUsdPerHour" and len(one.dimensions) > 2}
    return {
        **in_trouble(situation),
        "AgentsLimitUsedPercent": [
            f"{level.text} (max_agents {level.ceilings.max_agents:g})"
            for level, percent in agents_used(situation, Budget(situation))
            if percent >= 100.0
        ],
        "IdleUsdPerHour": [f"pool {pool} ({dollars(usd)} an hour)" for pool, usd in sorted(idle.items(), key=lambda of: -of[1]) if usd],
    }


def in_trouble(situation: Situation) -> dict[str, list[str]]:
    """Name by its metric what is counted since it is in trouble: agents, hosts, pools, teams, controllers, steps, what cannot be read."""
    pools = {record.instance_id: record.pool for record in situation.snapshot.records}
    views = situation.snapshot.controllers.values()
    return {
        "DrainsOverdue": [f"{one.record.node} of pool {one.pool.name}" for one in situation.agents if is_drain_overdue(situation, one)],
        "AgentsStuck": [f"{name} of pool {pools.get(name, '?')}" for name in in_state(situation.memory, REFUSED.name)],
        "BreakersOpen": _open_breakers(situation),
        "StepsFailing": [*steps_that_keep_failing(situation.memory)],
        "ControllersUnread": [f"controller {view.name} ({view.problem})" for view in views if not view.complete],
        "ControllersWithoutJobs": [f"controller {view.name}" for view in views if not view.shows_jobs],
        "StateUnread": told_unread(situation.snapshot),
        "TeamsHeldBack": [use.level.text for use in held_back(situation) if use.level.kind is LevelKind.TEAM],
        "HostsOffline": [f"host {host.name}" for host, _ in hosts_away(situation)],
    }


def told_unread(snapshot: Snapshot) -> list[str]:
    """Name what this version cannot read of our own state, and say why not, as far as it can tell."""
    told = {f"record#{instance_id}": why.text for instance_id, why in snapshot.unread_records.items() if why.state}
    return [f"{name} ({told[name]})" if name in told else name for name in snapshot.unread]


def _open_breakers(situation: Situation) -> list[str]:
    """Name what is launched one agent at a time: pools whose boots or whose image fail, and controllers that no agent can connect to."""
    memory = situation.memory
    told = {TrialOf.BOOT: "pool", TrialOf.IMAGE: "pool", TrialOf.CONNECT: "controller"}
    return [f"{what} {name}" for kind, what in told.items() for name, trial in trials_of(memory, kind).items() if trial.is_broken]


# The schedules of pools for people: which hold now, which begin next, and when, by their own clocks and the reader's.


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleEntry:
    """A schedule of a pool that holds now, or is the next to begin. ``numbers``: what the pool has by it.

    ``at``: when it ends, or begins; None where it never ends. ``there``: the same by the clocks of its time zone.
    """

    pool: str
    numbers: str
    holds: bool
    at: float | None
    there: str


def list_schedules(fleet: Fleet, now: float) -> tuple[ScheduleEntry, ...]:
    """List of each pool the schedules that hold now, with what they give it, and those that begin next."""
    return tuple(entry for pool in fleet.pools.values() for entry in _of_pool(pool, now))


def told_entry(entry: Mapping[str, Any], now: float, zone_of: Callable[[float], tzinfo | None]) -> str:
    """Say what a pool has by a schedule, and until or from when. ``zone_of``: the reader's time zone at an instant."""
    said, at = f"{entry['numbers']} by schedule", entry["at"]
    if at is None:
        return f"{said} at all hours"
    here = moment(at, now, zone_of(at) or UTC)
    same = here.startswith(entry["there"].rpartition(" ")[0] + " ")
    when = entry["there"] if same else f"{entry['there']} ({here})"
    return f"{said} until {when}, for another {duration(at - now)}" if entry["holds"] else f"{said} from {when}, in {duration(at - now)}"


def told_schedules(situation: Situation, pool: Pool) -> Iterator[str]:
    """Say what a pool of the fleet file has by its schedules now and next, and how long before they begin agents are launched for it."""
    entries = list(_of_pool(pool, situation.now))
    yield from (told_entry(asdict(entry), situation.now, lambda _: UTC) for entry in entries)
    if any(not entry.holds for entry in entries):
        yield f"agents for a schedule are launched or started {duration(lead_seconds(situation.snapshot, pool))} before it begins"


def _of_pool(pool: Pool, now: float) -> Iterator[ScheduleEntry]:
    spans = [(schedule, span) for schedule in pool.schedules for span in islice(now_and_next(schedule, now), 2)]
    yield from _holding(pool, [one for one in spans if one[1].holds(now)], now)
    coming = [(schedule, span) for schedule, span in spans if not span.holds(now)]
    first = min((span.begins_at for _, span in coming), default=inf)
    yield from (_entry(pool, schedule, numbers_of(schedule), span, now) for schedule, span in coming if span.begins_at == first)


def _holding(pool: Pool, spans: Sequence[tuple[PoolSchedule, Span]], now: float) -> Iterator[ScheduleEntry]:
    """List what holds now, each without what a later one gives instead."""
    for place, (schedule, span) in enumerate(spans):
        later = {key for other, _ in spans[place + 1 :] for key in numbers_of(other)}
        if given := {key: number for key, number in numbers_of(schedule).items() if key not in later}:
            yield _entry(pool, schedule, given, span, now)


def _entry(pool: Pool, schedule: PoolSchedule, numbers: Mapping[str, Any], span: Span, now: float) -> ScheduleEntry:
    at = span.ends_at if span.holds(now) else span.begins_at
    return ScheduleEntry(
        pool=pool.name,
        numbers=", ".join(f"{key} {_told(number)}" for key, number in numbers.items()),
        holds=span.holds(now),
        at=None if at == inf else at,
        there="" if at == inf else moment(at, now, schedule.time_zone),
    )


def _told(number: object) -> str:
    if isinstance(number, WarmPool):
        return f"of {number.min_agents} to {number.max_agents} stopped agents"
    return "off" if number is False else str(number)
