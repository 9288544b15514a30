"""Outdated agents: launched from another version of their launch template than would be launched now, or too old.

They go first where agents are surplus, and a share of them an hour where none is: cordoned for good, drained, replaced by
demand. Of a version that never booted one agent is tried first, before more than one of the old ones is taken for it.
"""

from collections.abc import Collection, Iterator

from autoscaler.domain.agents import Agent
from autoscaler.domain.marks import MarkClass
from autoscaler.domain.pace import PACE, Taking, left_this_hour
from autoscaler.domain.plan import Cordon, Held
from autoscaler.domain.reasons import Reason
from autoscaler.domain.situation import Situation
from autoscaler.domain.trials import is_canary, why_outdated


def outdated(situation: Situation, controller: str, cordoned: Collection[Cordon]) -> Iterator[Cordon | Held]:
    """Cordon outdated agents of one controller, as many as the hour's share still allows. ``cordoned``: what this pass takes already."""
    taking = Taking(
        kind=MarkClass.OUTDATED,
        adjective="outdated",
        reason=Reason.OUTDATED,
        wrong_with=lambda agent: why_outdated(situation, agent),
        allowed=lambda pool, mine: _allowed(situation, pool, mine),
        pace=lambda pool: "the new version has not been seen to boot yet" if is_canary(situation, pool) else PACE,
    )
    yield from taking.of(situation, controller, cordoned)


def _allowed(situation: Situation, pool: str, mine: list[Agent]) -> int:
    if is_canary(situation, pool):
        # One makes room for the first agent of the new version; the others stay until that one has connected.
        under_way = any(_makes_room(agent) or agent.record.instance_id not in situation.memory.connected for agent in mine)
        breaker = situation.memory.breakers.get(pool)
        return 0 if under_way or (breaker and breaker.failures) else 1
    return left_this_hour(situation, MarkClass.OUTDATED, pool, len(mine))


def _makes_room(agent: Agent) -> bool:
    return agent.mark is not None and agent.mark.kind is MarkClass.OUTDATED
