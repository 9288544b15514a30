"""The limits of teams and pools: how much of each is used, and what a team has spent of its share."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf

from autoscaler.domain.facts.fleet import NO_CEILINGS, Fleet, Team
from autoscaler.domain.facts.metering import SHARE_SECONDS, Level, LevelKind, spent_in_month, spent_lately, teams
from autoscaler.domain.launch.budget import Budget, Usage
from autoscaler.domain.launch.turns import order_of, spent_for_weight
from autoscaler.domain.report.datum import COUNT, NONE, PERCENT, Datum, one
from autoscaler.domain.report.stopped import usd_per_hour_of
from autoscaler.domain.scale_in.make_room import what_holds
from autoscaler.domain.situation.agents import Phase
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import dollars, duration

_BOOTS = (Phase.REQUESTED, Phase.CONNECTING)


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
    return tuple(_used(situation, use, shares) for use in room.levels if _has_limits_of_its_own(use.level))


def _has_limits_of_its_own(level: Level) -> bool:
    if level.kind is LevelKind.POOL:
        return replace(level.ceilings, max_agents=inf, max_hours_per_day=inf) != NO_CEILINGS
    return level.kind is LevelKind.TEAM


def _used(situation: Situation, use: Usage, shares: dict[str, str]) -> LimitsUsed:
    level, limits = use.level, use.level.ceilings
    return LimitsUsed(
        whose=level.text,
        pools=tuple(sorted(level.pools)),
        agents=use.agents,
        max_agents=_limit(limits.max_agents),
        launches_in_the_hour=use.launched,
        max_launches_per_hour=_limit(limits.max_launches_per_hour),
        reserved_usd_per_hour=round(use.usd_per_hour, 4),
        max_usd_per_hour=_limit(limits.max_usd_per_hour),
        usd_in_the_month=round(spent_in_month(situation.memory.month, level), 2),
        max_usd_per_month=_limit(limits.max_usd_per_month),
        share=shares.get(level.text, ""),
        stopped=what_holds(situation, level) if level in situation.stopped_levels else "",
    )


def _limit(value: float) -> float | None:
    return None if value == inf else value


def _share(situation: Situation, team: Team) -> str:
    usd, for_weight = spent_lately(situation.memory.lately, team.pools), spent_for_weight(situation, team)
    weighed = f", {dollars(for_weight)} for its weight of {team.weight:g}" if usd != for_weight else ""
    return f"{dollars(usd)} in the last {duration(SHARE_SECONDS)}{weighed}"


def in_turn(situation: Situation) -> list[Team]:
    """Order the teams as they go first where a limit keeps several waiting."""
    several = [team for team in teams(situation.fleet) if team.pools] if situation.fleet.teams else []
    order = order_of(situation, several)
    return sorted(several, key=lambda team: order.key(team.name))


def held_back(situation: Situation) -> list[Usage]:
    """Find the fleet and the teams whose jobs wait for more agents than boot, and whose limits leave no room for one more."""
    if not any(situation.starved_by_pool(controller) for controller in situation.demands):
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
    starved = (situation.starved_by_pool(controller) for controller in situation.demands)
    waiting = sum(count for by_pool in starved for pool, count in by_pool.items() if level.has(pool))
    boots = (agent for agent in situation.agents if agent.phase in _BOOTS and level.has(agent.pool.name))
    return waiting > sum(agent.pool.executors for agent in boots)


def measure_teams(situation: Situation, room: Budget) -> Iterator[Datum]:
    """Describe the dollars of each team, and how many a limit keeps waiting. Only fleets with teams pay for it."""
    if situation.fleet.teams:
        held = sum(use.level.kind is LevelKind.TEAM for use in held_back(situation))
        yield one("TeamsHeldBack", held, COUNT, (("Fleet", situation.fleet.name),))
    for use in room.levels:
        if use.level.kind is not LevelKind.TEAM:
            continue
        level, limits = use.level, use.level.ceilings
        dimensions = (("Fleet", situation.fleet.name), ("Team", level.name))
        usd_per_hour = sum(usd_per_hour_of(situation, record) for record in situation.snapshot.living if level.has(record.pool))
        month = spent_in_month(situation.memory.month, level)
        yield one("UsdPerHour", usd_per_hour, NONE, dimensions)
        yield one("UsdMonth", month, NONE, dimensions)
        if limits.max_usd_per_hour < inf:
            yield one("UsdPerHourUsedPercent", 100.0 * use.usd_per_hour / limits.max_usd_per_hour, PERCENT, dimensions)
        if limits.max_usd_per_month < inf:
            yield one("UsdMonthUsedPercent", 100.0 * month / limits.max_usd_per_month, PERCENT, dimensions)
