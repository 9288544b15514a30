"""Strangers: instances and nodes of ours that no record knows. The state was lost, or an answer, or a pass was cut off."""

from collections.abc import Iterator, Mapping

from autoscaler.domain import slots
from autoscaler.domain.looks import Condition, Seen
from autoscaler.domain.memory import Look
from autoscaler.domain.numbers import DISCONNECT_GRACE_SECONDS, NOT_FOUND_IS_GONE_AFTER_SECONDS
from autoscaler.domain.plan import Adopt, DeleteNode, FreeSlot
from autoscaler.domain.reasons import Reason
from autoscaler.domain.situation import Situation
from autoscaler.domain.snapshot import Instance, InstanceState, Node, RecordState


def strangers_seen(situation: Situation) -> dict[str, Seen]:
    """Name every stranger that can be believed: a record, a look or a node may be late."""
    seen = {instance.id: Seen(Condition.STRAY) for instance in _strays(situation)}
    seen |= {f"{controller}/{node.name}": Seen(Condition.ORPHAN) for controller, node in _orphans(situation)}
    return seen | {f"{controller}/{node.name}": Seen(Condition.ORPHAN) for controller, node, _ in slots.left_offline(situation)}


def take_in(situation: Situation, facts: Mapping[str, Look]) -> Iterator[Adopt | FreeSlot | DeleteNode]:
    """Adopt instances, for what follows to judge them as any other; give back slots; delete nodes of instances that are gone."""
    for instance in _strays(situation):
        if instance.id in facts:
            yield _adopt(situation, instance)
    for controller, node, mark in slots.left_offline(situation):
        if f"{controller}/{node.name}" in facts:
            pool = situation.fleet.pool_of_slot(controller, node.labels)
            yield slots.free_slot(controller, pool.name if pool else "", node.name, None, mark)
    for controller, node in _orphans(situation):
        fact = facts.get(f"{controller}/{node.name}")
        instance_id = instance_in(node)
        if fact and situation.now - fact.first_at >= _doubtful_seconds(situation, controller, node):
            detail = f"EC2 says that its instance {instance_id} is gone"
            yield DeleteNode(controller=controller, pool="", node=node.name, instance_id=None, reason=Reason.INSTANCE_GONE, detail=detail)


def _doubtful_seconds(situation: Situation, controller: str, node: Node) -> float:
    """How long an orphan is kept. What waits for it, or seems to run there, waits in vain; its controller learns of it by the deletion."""
    if situation.snapshot.fates.get(instance_in(node) or "") is InstanceState.NOT_FOUND:
        return NOT_FOUND_IS_GONE_AFTER_SECONDS
    unused = node.idle and node.name not in situation.demands[controller].pins
    return 0.0 if unused else DISCONNECT_GRACE_SECONDS


def node_named_after(situation: Situation, controller: str, instance_id: str) -> str | None:
    """Find the node of ours whose description names this instance."""
    for node in situation.snapshot.controllers[controller].nodes:
        if situation.fleet.ownership_label in node.labels and instance_in(node) == instance_id:
            return node.name
    return None


def _strays(situation: Situation) -> Iterator[Instance]:
    """Instances with our tags and no record, on a controller that could be read: whether they have a node is known."""
    known = {record.instance_id for record in situation.snapshot.records}
    for instance in situation.snapshot.instances:
        if instance.id in known or instance.state.ended or situation.no_giving_up(instance.controller):
            continue
        if instance.pool in situation.fleet.pools:
            yield instance


def _adopt(situation: Situation, instance: Instance) -> Adopt:
    node = _node_of(situation, instance)
    return Adopt(
        controller=instance.controller,
        pool=instance.pool,
        instance_id=instance.id,
        node=node,
        reason=Reason.UNKNOWN_INSTANCE,
        detail=f"{instance.id} carries our tags and has no record; {f'its node is {node}' if node else 'it has no node'}",
    )


def _node_of(situation: Situation, instance: Instance) -> str | None:
    """Find the node of an instance without a record: EC2 shows its name, or the node's description names the instance."""
    view = situation.snapshot.controllers[instance.controller]
    ours = {node.name for node in view.nodes if situation.fleet.ownership_label in node.labels}
    return instance.node if instance.node in ours else node_named_after(situation, instance.controller, instance.id)


def _orphans(situation: Situation) -> Iterator[tuple[str, Node]]:
    """Nodes with our ownership label and no record, offline, whose instance EC2 says is gone."""
    recorded = {(record.controller, record.node) for record in situation.snapshot.records if record.state is not RecordState.GONE}
    for view in situation.views():
        if situation.no_giving_up(view.name) or view.name in situation.fleet.slot_controllers:
            continue
        for node in view.nodes:
            if (view.name, node.name) in recorded or not node.offline or situation.fleet.ownership_label not in node.labels:
                continue
            fate = situation.snapshot.fates.get(instance_in(node) or "")
            if fate is not None and (fate.ended or fate is InstanceState.NOT_FOUND):
                yield view.name, node


def instance_in(node: Node) -> str | None:
    """Find the instance id in the description that we gave a node."""
    words = (word.strip(".,") for word in node.description.split())
    return next((word for word in words if word.startswith("i-")), None)
