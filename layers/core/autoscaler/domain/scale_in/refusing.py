"""Agents that refuse: what stands free beside waiting jobs and takes none of them is replaced, one at a time in a pool.

The next goes once the replacement of the last one has taken a build, or after an hour: whatever makes agents refuse may be
nothing that another agent cures. If no build has begun on the controller meanwhile, the controller is the cause, and no agent goes.
"""

from collections.abc import Iterator

from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.plan import Cordon, Held
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.scale_in.replace import DisruptionBudget, left_this_hour
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.distrust import Distrust
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.steps import Decided
from autoscaler.domain.wording import duration


def refusing(situation: Situation, controller: str, decided: Decided) -> Iterator[Cordon | Held]:
    """Cordon idle agents that take no builds."""
    distrust = situation.distrust(controller)
    if not any(free_node.is_useless for free_node in distrust.nodes.values()):
        return
    budget = DisruptionBudget(
        kind=MarkClass.REFUSES,
        adjective="free and take no builds",
        reason=Reason.REFUSES_ALL,
        wrong_with=lambda agent: _why_refusing(situation, distrust, agent),
        allowed=lambda pool, mine: _allowed(situation, pool, mine),
        pace=lambda _pool: "the next is replaced once the last replacement has taken a build, or after an hour",
    )
    yield from budget.of(situation, controller, decided)


def _why_refusing(situation: Situation, distrust: Distrust, agent: Agent) -> tuple[Reason, str] | None:
    free_node = distrust.nodes.get(agent.node.name) if agent.node and agent.idle and agent.makes_room else None
    if free_node is None or not free_node.is_useless or distrust.began_at < free_node.since_at:
        return None
    jobs = ", ".join(sorted(free_node.refused))
    return Reason.REFUSES_ALL, f"it has been free for {duration(situation.now - free_node.since_at)}, and took none of {jobs}"


def _allowed(situation: Situation, pool: str, mine: list[Agent]) -> int:
    if any(agent.mark is not None and agent.mark.kind is MarkClass.REFUSES for agent in mine):
        return 0
    last = max(situation.memory.taken.get(f"{MarkClass.REFUSES}/{pool}", ()), default=None)
    works = last is None or any(agent.record.began_at > last and agent.busy_executors for agent in mine)
    return 1 if works else left_this_hour(situation, MarkClass.REFUSES, pool, 1)
