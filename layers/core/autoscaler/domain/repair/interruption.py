"""EC2's announcements about one instance: an interruption, a risk of one, or a change of state."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from autoscaler.domain.facts.marks import Mark, MarkClass
from autoscaler.domain.facts.plan import Cordon, DeleteNode, FinishStop, Held
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import RecordState
from autoscaler.domain.repair.stops import finish
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.situation import Situation


class Announced(StrEnum):
    """What is announced."""

    INTERRUPTION = "interruption"  # a spot instance goes in two minutes
    REBALANCE = "rebalance"  # a spot instance is at greater risk than others
    STATE = "state"  # it ended, or was stopped; what EC2 says now counts, not what the event said


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceEvent:
    """One announcement."""

    kind: Announced
    instance_id: str


_MARKS = {
    Announced.INTERRUPTION: (MarkClass.INTERRUPTED, Reason.INTERRUPTED),
    Announced.REBALANCE: (MarkClass.REBALANCE, Reason.REBALANCE),
}
# Phases in which demand may count on an agent, or come to.
_STOPS_OR_STARTS = (RecordState.STOPPING, RecordState.STARTING)
_USABLE = {Phase.READY, Phase.CONNECTING, Phase.RETIRING}


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
            yield from (step for step in finish(situation, agent) if isinstance(step, FinishStop | Held))
        elif event.kind in _MARKS and _is_about(event, agent) and agent.node is not None:
            yield _cordon(situation, agent, *_MARKS[event.kind])


def _is_about(event: InstanceEvent, agent: Agent) -> bool:
    """Tell whether an announcement changes anything for an agent: a person who has it is told that it goes, and not of a risk."""
    return agent.phase in _USABLE or (agent.phase is Phase.RESERVED and event.kind is Announced.INTERRUPTION)


def builds_at_risk(situation: Situation, event: InstanceEvent) -> tuple[str, ...]:
    """Name the builds that run on an instance which EC2 will interrupt."""
    if event.kind not in _MARKS:
        return ()
    return tuple(
        build.job
        for agent in situation.agents
        if agent.record.machine == event.instance_id and agent.node is not None
        for build in agent.node.builds
    )


def _cordon(situation: Situation, agent: Agent, kind: MarkClass, reason: Reason) -> Cordon:
    node = agent.node.name if agent.node else ""
    at_risk = f"{agent.busy_executors} builds are at risk" if agent.busy_executors else "it is idle"
    return Cordon(
        controller=agent.record.controller,
        pool=agent.pool.name,
        node=node,
        mark=Mark(fleet=situation.fleet.name, kind=kind, pass_id=situation.snapshot.pass_id),
        replaces=agent.mark,
        reason=reason,
        detail=f"EC2 announced it for {agent.record.instance_id}; {at_risk}",
    )


def _clean_up(situation: Situation, agent: Agent) -> Iterator[DeleteNode | Held]:
    """Delete the node of an ended instance. Nodes with a build, or one bound to them, are left to the repairs."""
    controller = agent.record.controller
    reason = situation.no_giving_up(controller)
    if agent.node is None or agent.instance is None or not agent.machine_gone or controller in situation.fleet.slot_controllers:
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
