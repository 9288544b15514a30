"""Agents that were taken out of use to serve another controller: sent there once they are drained, or left where they are."""

from collections.abc import Iterator
from dataclasses import replace

from autoscaler.domain.facts.nodes import described_instance
from autoscaler.domain.facts.plan import FinishRotation, Held, Rotate, Uncordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import Node, Record, RecordState
from autoscaler.domain.repair.instances import DISCONNECT_GRACE_SECONDS
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.left_sides import told_unseen, unseen_sides
from autoscaler.domain.situation.rotation import destinations
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.steps import Decided, hold_back, uncordon


def unwanted_elsewhere(situation: Situation, agent: Agent) -> Uncordon | None:
    """Give an agent back to its controller if no other one waits for it any more, or a build is bound to it; None if it may go.

    A job that asks for the node by name would keep it where it is, and never begin.
    """
    if situation.protected(agent):
        return uncordon(agent, Reason.PINNED, f"a build of {agent.record.controller} waits for {agent.record.node} by name")
    if agent.record.instance_id in destinations(situation, agent.pool.name):
        return None
    return uncordon(agent, Reason.NOT_WANTED_ELSEWHERE, "no other controller waits for it any more")


def rotate(situation: Situation, agent: Agent, seen: str) -> Rotate | Held:
    """Send a drained agent to the controller that waits for it."""
    to = destinations(situation, agent.pool.name).get(agent.record.instance_id)
    if to is None or agent.mark is None or agent.record.node is None:
        return hold_back(agent, Reason.SECOND_LOOK, f"{agent.record.node} is drained, and nobody waits for it")
    return Rotate(
        controller=agent.record.controller,
        pool=agent.pool.name,
        node=agent.record.node,
        instance_id=agent.record.instance_id,
        mark=agent.mark,
        to=to,
        reason=Reason.ROTATES,
        detail=f"{seen}, and jobs wait on {to}",
    )


def confirmed_unseen(situation: Situation, target: str, why: str) -> Iterator[FinishRotation]:
    """Let go of what a machine left, or a host was, on a controller that is not in the fleet file any more: a person says that it is idle.

    The sides of an instance end with the instance. ``target``: its node or its id.
    """
    machines = {record.machine for record in situation.snapshot.records if target in {record.node, record.instance_id, record.machine}}
    for machine in machines:
        for record, side in unseen_sides(situation, machine):
            if side in record.leaves or record.is_host:
                detail = f"{side.controller} left the fleet file; {why}"
                yield _finish(record, side.controller, side.node or "", detail, Reason.MANUAL)


def finish_rotations(situation: Situation, _decided: Decided) -> Iterator[FinishRotation | Held]:
    """Delete the node that an agent had on the controller that it left, after a pass that was cut off in between.

    If a build is bound to that node, the agent goes back to it: until then nobody would connect it there again.
    """
    for record in situation.snapshot.records:
        for left in record.leaves:
            if left.node is not None and left.controller in situation.left_controllers:
                detail = f"{record.instance_id} serves {record.controller} once it has left: {told_unseen(record.machine, left)}"
                yield Held(pool=record.pool, controller=record.controller, reason=Reason.USED_ELSEWHERE, detail=detail)
            elif left.node is not None and not situation.no_giving_up(left.controller):
                step = _finish(record, left.controller, left.node, f"{record.instance_id} serves {record.controller} now")
                yield replace(step, is_bound=situation.is_bound(left.controller, left.node))
    yield from _forgotten_nodes_of_hosts(situation)


def _forgotten_nodes_of_hosts(situation: Situation) -> Iterator[FinishRotation]:
    """Delete the node of a host on a controller that its record does not know: the record was lost while the host changed controllers.

    The nodes of instances end with the instances; a host stays for ever.
    """
    hosts = {record.instance_id: record for record in situation.snapshot.records if record.is_host and _serves_for_long(situation, record)}
    for controller, node in situation.believed_nodes() if hosts else ():
        record = hosts.get(described_instance(situation.fleet, node.name, node.description) or "")
        if record and not _has_place_on(record, controller) and _is_unused(situation, controller, node):
            detail = f"{record.instance_id} serves {record.controller} now, and not {controller}"
            yield _finish(record, controller, node.name, detail)


def _finish(record: Record, controller: str, node: str, detail: str, reason: Reason = Reason.ROTATES) -> FinishRotation:
    return FinishRotation(controller=controller, pool=record.pool, node=node, instance_id=record.instance_id, reason=reason, detail=detail)


def _has_place_on(record: Record, controller: str) -> bool:
    return any(binding.controller == controller for binding in (*record.bindings, *record.leaves))


def _is_unused(situation: Situation, controller: str, node: Node) -> bool:
    is_away = node.offline and not node.temporarily_offline
    return is_away and node.idle and not node.builds and not situation.is_bound(controller, node.name)


def _serves_for_long(situation: Situation, record: Record) -> bool:
    return record.state is RecordState.REGISTERED and situation.now - record.changed_at >= DISCONNECT_GRACE_SECONDS
