"""Orphans: our instances and nodes without a record, after a lost state, a lost answer or a cut-off pass."""

from collections.abc import Iterator, Mapping

from autoscaler.domain.facts.fleet import HOST
from autoscaler.domain.facts.memory import Observation
from autoscaler.domain.facts.nodes import described_instance, read_mark
from autoscaler.domain.facts.plan import Adopt, DeleteNode, FreeSlot
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import SIDE, Instance, InstanceState, Node, RecordState
from autoscaler.domain.repair.static_nodes import free_left_slot, left_offline
from autoscaler.domain.repair.two_looks import DISCONNECT_GRACE_SECONDS, Condition, Seen
from autoscaler.domain.situation.situation import Situation


def unrecorded_seen(situation: Situation) -> dict[str, Seen]:
    """Name every credible orphan: a record, a look or a node may be late."""
    seen = {instance.id: Seen(Condition.STRAY) for instance in _strays(situation)}
    seen |= {f"{controller}/{node.name}": Seen(Condition.ORPHAN) for controller, node, _ in _orphans(situation)}
    return seen | {f"{controller}/{node.name}": Seen(Condition.ORPHAN) for controller, node, _ in left_offline(situation)}


def take_in(situation: Situation, facts: Mapping[str, Observation]) -> Iterator[Adopt | FreeSlot | DeleteNode]:
    """Adopt instances, so that the other rules judge them; free static nodes; delete nodes of instances that are gone."""
    for instance in _strays(situation):
        if instance.id in facts:
            yield _adopt(situation, instance)
    for controller, node, mark in left_offline(situation):
        if f"{controller}/{node.name}" in facts:
            pool = situation.fleet.pool_of_slot(controller, node.labels)
            yield free_left_slot(controller, pool.name if pool else "", node.name, mark)
    for controller, node, instance_id in _orphans(situation):
        fact = facts.get(f"{controller}/{node.name}")
        if fact and situation.now - fact.first_at >= _doubtful_seconds(situation, controller, node):
            yield DeleteNode(
                controller=controller,
                pool="",
                node=node.name,
                instance_id=instance_id,
                fate=situation.snapshot.fates.get(instance_id, InstanceState.TERMINATED),
                though_busy=instance_id in situation.forgotten_for_a_day,
                reason=Reason.INSTANCE_GONE,
                detail=f"EC2 says that its instance {instance_id} is gone",
            )


def _doubtful_seconds(situation: Situation, controller: str, node: Node) -> float:
    """How long an orphan is kept. What waits for it, or seems to run there, waits in vain; its controller learns of it by the deletion."""
    unused = node.idle and node.name not in situation.demands[controller].pins
    return 0.0 if unused else DISCONNECT_GRACE_SECONDS


def node_named_after(situation: Situation, controller: str, instance_id: str) -> str | None:
    """Find the node of ours whose description names this instance. Its labels may have been edited by a person."""
    for node in situation.snapshot.controllers[controller].nodes:
        if described_instance(situation.fleet, node.name, node.description) == instance_id:
            return node.name
    return None


def _strays(situation: Situation) -> Iterator[Instance]:
    """Instances with our tags and no record, on a controller that could be read: whether they have a node is known."""
    known = {record.instance_id for record in situation.snapshot.records} | situation.snapshot.unread_records.keys()
    for instance in situation.snapshot.instances:
        if instance.launch in situation.snapshot.unread_launches:
            continue
        if instance.id in known or instance.state.ended or situation.no_giving_up(instance.controller):
            continue
        if situation.fleet.pool_of(instance.pool, instance.controller) is not None:
            yield instance


def _adopt(situation: Situation, instance: Instance) -> Adopt:
    # EC2 shows the name that we gave it, or the node's description names the instance.
    node = instance.node or node_named_after(situation, instance.controller, instance.id)
    return Adopt(
        controller=instance.controller,
        pool=instance.pool,
        instance_id=instance.id,
        node=node,
        reason=Reason.UNKNOWN_INSTANCE,
        detail=f"{instance.id} carries our tags and has no record; {f'its node is {node}' if node else 'it has no node'}",
    )


def _orphans(situation: Situation) -> Iterator[tuple[str, Node, str]]:
    """Nodes that we made and that have no record, offline and not by a person, with their instances, which EC2 says are gone."""
    recorded = {(record.controller, record.node) for record in situation.snapshot.records if record.state is not RecordState.GONE}
    for controller, node in situation.believed_nodes():
        if (controller, node.name) in recorded or node.is_deleted or not node.offline or _marked_by_a_person(situation, node):
            continue
        instance_id = described_instance(situation.fleet, node.name, node.description)
        if instance_id is not None and _is_gone(situation, node, instance_id):
            yield controller, node, instance_id


def _is_gone(situation: Situation, node: Node, instance_id: str) -> bool:
    """Tell whether EC2 says that a node's instance is gone, or a host has left the fleet file.

    One whose record cannot be read has a record, whatever that says.
    """
    if instance_id in {name.partition(SIDE)[0] for name in situation.snapshot.unread_records}:
        return False
    if instance_id.startswith(HOST):
        return not any(host.id == instance_id for host in situation.fleet.hosts.values())
    fate = situation.snapshot.fates.get(instance_id)
    left = (node.idle and not node.builds) or instance_id in situation.forgotten_for_a_day
    return fate is InstanceState.TERMINATED or (fate is InstanceState.NOT_FOUND and instance_id in situation.forgotten and left)


def _marked_by_a_person(situation: Situation, node: Node) -> bool:
    return node.temporarily_offline and read_mark(node.reason, situation.fleet.name) is None
