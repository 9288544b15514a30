"""EC2's announcements about one instance: an interruption, or a change of state.

Its rebalance recommendations are not listened to: they come for most young spot instances, of which few are then interrupted.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from autoscaler.domain.facts.nodes import Mark, MarkClass, has_static_node
from autoscaler.domain.facts.plan import Cordon, DeleteNode, FinishStop, Held, Uncordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import InstanceState, RecordState
from autoscaler.domain.lifecycle import FOLLOWS, Pass
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.situation import Decided, Situation, uncordon
from autoscaler.domain.situation.states import state_of
from autoscaler.domain.wording import duration


class Announced(StrEnum):
    """What is announced."""

    INTERRUPTION = "interruption"  # a spot instance goes in two minutes
    STATE = "state"  # it ended, or was stopped; what EC2 says now counts, not what the event said


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceEvent:
    """One announcement."""

    kind: Announced
    instance_id: str


# Phases in which demand may count on an agent, or come to.
_STOPS_OR_STARTS = (RecordState.STOPPING, RecordState.STARTING)
_USABLE = {Phase.READY, Phase.CONNECTING, Phase.RETIRING, Phase.RESERVED, Phase.MARKED, Phase.INTERRUPTED}


def handle_event(situation: Situation, event: InstanceEvent) -> Iterator[Cordon | DeleteNode | FinishStop | Held]:
    """Cordon the interrupted agent at once; it is no supply any more, so demand replaces it. Finish a stop, or a start that failed."""
    for agent in situation.agents:
        if agent.record.machine != event.instance_id:
            continue
        if agent.phase is Phase.UNSEEN:
            yield Held(pool=agent.pool.name, controller=agent.record.controller, reason=Reason.INCOMPLETE, detail=str(agent.record.node))
        elif agent.instance_ended:
            yield from _clean_up(situation, agent)
        elif agent.record.state in _STOPS_OR_STARTS:
            # What is to be started again, or to be terminated since it never will start, is scale_down's to ask for.
            follow = FOLLOWS[state_of(situation, agent)](Pass(situation), agent)
            yield from (step for step in follow if isinstance(step, FinishStop | Held))
        elif event.kind is Announced.INTERRUPTION and agent.phase in _USABLE and agent.node is not None:
            yield _cordon(situation, agent, agent.node.name)


def builds_at_risk(situation: Situation, event: InstanceEvent) -> tuple[str, ...]:
    """Name the builds that run on an instance which EC2 will interrupt."""
    if event.kind is not Announced.INTERRUPTION:
        return ()
    return tuple(
        build.job
        for agent in situation.agents
        if agent.record.machine == event.instance_id and agent.node is not None
        for build in agent.node.builds
    )


def cordon_interrupted(situation: Situation, controller: str, _decided: Decided) -> Iterator[Cordon | Uncordon]:
    """Cordon agents that EC2 takes back and that carry no mark yet; uncordon those that EC2 has not ended in time."""
    for agent in situation.agents:
        if agent.record.controller != controller or agent.node is None or agent.instance_ended:
            continue
        if agent.phase is Phase.INTERRUPTED:
            yield _cordon(situation, agent, agent.node.name)
        elif _was_not_ended(situation, agent):
            detail = f"EC2 announced {duration(situation.now - agent.record.interrupted_at)} ago that it takes it back, and has not"
            yield uncordon(agent, Reason.NOT_INTERRUPTED, detail)


def _was_not_ended(situation: Situation, agent: Agent) -> bool:
    """Tell whether an agent is out of use for an interruption that did not come. One that is idle goes as every drained one."""
    is_marked = agent.phase is Phase.DRAINING and agent.mark is not None and agent.mark.kind is MarkClass.INTERRUPTED
    was_announced = bool(agent.record.interrupted_at) and not agent.record.is_interrupted(situation.now)
    return is_marked and was_announced and agent.instance is InstanceState.RUNNING and not agent.idle


def _cordon(situation: Situation, agent: Agent, node: str) -> Cordon:
    at_risk = f"{agent.busy_executors} builds are at risk" if agent.busy_executors else "it is idle"
    return Cordon(
        controller=agent.record.controller,
        pool=agent.pool.name,
        node=node,
        mark=Mark(fleet=situation.fleet.name, kind=MarkClass.INTERRUPTED, pass_id=situation.snapshot.pass_id),
        replaces=agent.mark,
        over_monitor=agent.phase is Phase.MARKED,
        reason=Reason.INTERRUPTED,
        detail=f"EC2 announced it for {agent.record.instance_id}; {at_risk}",
    )


def _clean_up(situation: Situation, agent: Agent) -> Iterator[DeleteNode | Held]:
    """Delete the node of an ended instance. Nodes with a build, or one bound to them, are left to the repairs."""
    controller = agent.record.controller
    reason = situation.no_giving_up(controller)
    if agent.node is None or agent.instance is None or not agent.machine_gone or has_static_node(agent.record):
        return  # it is not over yet, or a slot rests before it is free again: the schedule sees to that
    if reason or situation.protected(agent) or not agent.idle:
        yield Held(pool=agent.pool.name, controller=controller, reason=reason or Reason.STILL_BUSY, detail=agent.node.name)
        return
    yield DeleteNode(
        controller=controller,
        pool=agent.pool.name,
        node=agent.node.name,
        instance_id=agent.record.instance_id,
        fate=agent.instance,
        reason=Reason.INSTANCE_GONE,
        detail=f"EC2 says that {agent.record.instance_id} has ended",
    )
