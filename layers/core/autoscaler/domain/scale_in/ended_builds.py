"""Agents whose executors show builds that have ended take no others there: they are drained, and replaced by demand.

Those on which nothing else runs are drained at once. Of those whose other executors are at work a share of the pool drains at a time.
"""

from collections.abc import Iterator

from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.plan import Cordon, Held
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.scale_in.replace import TAKEN_AT_LEAST, TAKEN_SHARE
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.steps import Decided, cordon, leaving


def free_from_ended(situation: Situation, controller: str, decided: Decided) -> Iterator[Cordon | Held]:
    """Cordon the agents of one controller that builds keep which have ended. Hosts stay: a person restarts Jenkins for them."""
    taken = leaving(decided, controller)
    for pool in situation.pools_of(controller).values():
        kept = [agent for agent in _kept(situation, pool) if agent.record.node not in taken]
        if kept and pool.on_hold:
            detail = f"{told_ended(kept[0])}; {pool.paused_detail}"
            yield Held(pool=pool.name, controller=controller, reason=Reason.HELD, detail=detail)
        else:
            yield from (_cordon(situation, agent) for agent in kept if not agent.executors)
            yield from (_cordon(situation, agent) for agent in [agent for agent in kept if agent.executors][: _places(pool)])


def _kept(situation: Situation, pool: PoolView) -> list[Agent]:
    ended = (agent for agent in pool.ready if agent.node and agent.node.ended)
    return [agent for agent in ended if agent.record.is_instance and not situation.protected(agent)]


def _cordon(situation: Situation, agent: Agent) -> Cordon:
    return cordon(situation, agent, MarkClass.USED_UP, Reason.BUILD_HAS_ENDED, told_ended(agent))


def told_ended(agent: Agent) -> str:
    """Say which runs keep an agent though they have ended."""
    runs = ", ".join(sorted({build.run for build in agent.node.ended})) if agent.node else ""
    return f"Jenkins shows {runs} on {agent.record.node}, and the run itself says that it has ended"


def _places(pool: PoolView) -> int:
    """How many more agents that work beside such a build may drain now."""
    drain = sum(bool(agent.mark and agent.node and agent.node.ended) for agent in pool.agents)
    return max(0, max(TAKEN_AT_LEAST, int(TAKEN_SHARE * len(pool.agents))) - drain)
