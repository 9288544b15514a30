"""Agents that have had as many builds as their operator allows: they take no more, and are replaced."""

from collections.abc import Iterator

from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.plan import Cordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.steps import Decided, cordon, leaving
from autoscaler.domain.situation.supply import builds_left
from autoscaler.domain.wording import counted


def used_up(situation: Situation, controller: str, decided: Decided) -> Iterator[Cordon]:
    """Cordon what may have no further build, at once and without a pace: builds must not share it. Those that run there go on."""
    taken = leaving(decided, controller)
    for pool in situation.pools_of(controller).values():
        for agent in pool.ready if pool.spec.max_builds is not None else ():
            if agent.record.node not in taken and not situation.protected(agent) and builds_left(situation, agent) == 0:
                detail = f"it has had {counted(pool.spec.max_builds or 0, 'build')}, and no more are wanted on one agent"
                yield cordon(situation, agent, MarkClass.USED_UP, Reason.MAX_BUILDS, detail)
