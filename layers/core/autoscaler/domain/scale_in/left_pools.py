"""Agents whose pool left the fleet file, or does not serve their controller any more: drained like any surplus.

If more than half of the fleet's agents lose their pool at once, the file is probably wrong: nothing is drained for an hour.
"""

from collections.abc import Iterable, Iterator

from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.orders import text_of
from autoscaler.domain.facts.plan import Cordon, Forget, Held, Step, Stop, Terminate
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import InstanceState, RecordState
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.left_pools import is_controller_left, is_left, is_on_hold
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.steps import Decided, cordon, hold_back, leaving, terminate
from autoscaler.domain.wording import moment

_IN_USE = (Phase.READY, Phase.MARKED)
_GIVEN_UP = (RecordState.CONDEMNED, RecordState.STOPPING)


def drain_left(situation: Situation, controller: str, decided: Decided) -> Iterator[Cordon | Terminate | Held]:
    """Cordon the agents of a controller that have no pool any more, and let go of those that are stopped. Reserved ones stay."""
    taken = leaving(decided, controller)
    for agent in situation.agents:
        if agent.record.controller != controller or not is_left(agent) or agent.instance_ended or agent.record.node in taken:
            continue
        if agent.phase is Phase.STOPPED and agent.instance is InstanceState.STOPPED:
            yield from _unless_held(situation, agent, terminate(agent, Reason.POOL_LEFT, why_left(situation, agent)))
        elif agent.phase in _IN_USE and not situation.protected(agent):
            yield from _unless_held(
                situation, agent, cordon(situation, agent, MarkClass.RETIRE, Reason.POOL_LEFT, why_left(situation, agent))
            )


def _unless_held(situation: Situation, agent: Agent, step: Cordon | Terminate) -> Iterator[Cordon | Terminate | Held]:
    """Take a step unless a person wants the agent kept, or nothing done in its pool, or most agents lost their pool at once."""
    name = agent.record.node or agent.record.instance_id
    holds = situation.overrides.holds_of_people_on(agent.record.controller, agent.pool.name)
    if is_on_hold(situation, agent):
        yield hold_back(agent, Reason.MOST_POOLS_LEFT, f"{name}: {told_hold(situation)}")
    elif holds:
        yield hold_back(agent, Reason.HELD, f"{name} has no pool any more; {text_of(holds, situation.now)}")
    elif situation.now < agent.record.keep_until:
        yield hold_back(agent, Reason.HELD, f"{name} has no pool any more; a person wants it kept until {moment(agent.record.keep_until)}")
    else:
        yield step


def keep_while_in_doubt(situation: Situation, decided: Iterable[Step | Held]) -> Iterator[Step | Held]:
    """Keep agents without a pool while most lost theirs at once; and do nothing on controllers that left but close records."""
    by_id = {agent.record.instance_id: agent for agent in situation.agents}
    for step in decided:
        agent = by_id.get(step.instance_id) if isinstance(step, Terminate | Stop) else None
        if agent is not None and _is_kept(situation, agent):
            yield hold_back(agent, Reason.MOST_POOLS_LEFT, f"{agent.record.node or agent.record.instance_id}: {told_hold(situation)}")
        elif isinstance(step, Held | Forget) or not is_controller_left(situation, step.controller) or _is_given_up(agent):
            yield step


def _is_kept(situation: Situation, agent: Agent) -> bool:
    return is_on_hold(situation, agent) and not agent.instance_ended and agent.record.state not in _GIVEN_UP


def _is_given_up(agent: Agent | None) -> bool:
    return agent is not None and agent.record.state is RecordState.CONDEMNED


def why_left(situation: Situation, agent: Agent) -> str:
    """Say why an agent has no pool any more."""
    pool = agent.pool.name
    if pool in situation.fleet.pools:
        return f"pool {pool} does not serve {agent.record.controller} any more (controllers)"
    return f"pool {pool} left the fleet file"


def told_hold(situation: Situation) -> str:
    """Say until when nothing without a pool is drained, and why."""
    until = moment(situation.memory.left_pools.hold_until)
    return f"more than half of the agents lost their pool at once, so nothing of it is drained before {until}"
