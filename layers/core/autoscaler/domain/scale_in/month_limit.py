"""At the limits of the month and of the day nothing new starts: agents are cordoned until it ends or the limit is raised."""

from collections.abc import Iterator
from math import inf

from autoscaler.domain.facts.metering import Level, LevelKind, hours_in_day, levels, spent_in_month
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.plan import Cordon, Terminate
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.steps import Decided, cordon, leaving
from autoscaler.domain.wording import dollars_apart, figures_apart

_MAY_TAKE_BUILDS = (Phase.READY, Phase.CONNECTING)


def stop_for_month_limit(situation: Situation, controller: str, decided: Decided) -> Iterator[Cordon | Terminate]:
    """Cordon every agent of a controller, except those a build may be bound to; one without a node is terminated.

    Holds, `min_agents` and what a person wants kept do not count: the limit is a ceiling.
    """
    taken = leaving(decided, controller)
    for agent in situation.agents if situation.stopped_levels else ():
        level = situation.stopped_by(agent.pool.name)
        if level is None or agent.record.controller != controller or agent.record.node in taken or agent.instance_ended:
            continue
        if agent.record.is_host:
            continue  # which costs nothing
        if agent.phase is Phase.REQUESTED:
            yield _terminate(agent, _of(situation, level)[1], what_holds(situation, level))
        elif agent.phase in _MAY_TAKE_BUILDS and not situation.protected(agent):
            yield cordon(situation, agent, *_of(situation, level), what_holds(situation, level))


def what_holds(situation: Situation, level: Level) -> str:
    """Say how much is spent or used, by whom, and what follows."""
    if level not in situation.spent_levels:
        return f"{_hours(situation, level)}: nothing new of it starts until midnight UTC"
    usd, limit = spent_in_month(situation.memory.month, level), level.ceilings.max_usd_per_month
    is_all = level.kind is LevelKind.FLEET
    by, new, of = ("", "nothing new", "") if is_all else (f" by {level.text}", "nothing new of it", f" of {level.text}")
    spent, allowed = dollars_apart(usd, limit)
    return f"{spent} of {allowed} are spent this month{by}: {new} starts until it ends or max_usd_per_month{of} is raised"


def told_hours(situation: Situation, pool: str) -> Iterator[str]:
    """Say how many hours of the day are used where a limit is about those of this pool."""
    for level in levels(situation.fleet):
        if level.has(pool) and level.ceilings.max_hours_per_day < inf:
            yield what_holds(situation, level) if level in situation.stopped_levels else _hours(situation, level)


def _hours(situation: Situation, level: Level) -> str:
    hours = hours_in_day(situation.memory.day, level, situation.now)
    used, limit = figures_apart(hours, level.ceilings.max_hours_per_day)
    return f"{used} of {limit} hours are used today by {level.text}"


def _of(situation: Situation, level: Level) -> tuple[MarkClass, Reason]:
    """Return the class of the mark and the reason: of the month's money, or of the day's hours."""
    if level in situation.spent_levels:
        return MarkClass.MONTH_LIMIT, Reason.USD_PER_MONTH
    return MarkClass.DAY_LIMIT, Reason.HOURS_PER_DAY


def _terminate(agent: Agent, reason: Reason, detail: str) -> Terminate:
    record = agent.record
    return Terminate(
        controller=record.controller,
        pool=record.pool,
        instance_id=record.instance_id,
        node=None,
        mark=None,
        reason=reason,
        detail=detail,
    )
