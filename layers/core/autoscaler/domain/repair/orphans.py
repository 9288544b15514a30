"""Orphans: our instances and nodes without a record, after a lost state or a cut-off pass; and static nodes, which are taken and left."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from autoscaler.domain.facts.fleet import HOST, Fleet
from autoscaler.domain.facts.memory import Observation
from autoscaler.domain.facts.nodes import Mark, MarkClass, described_instance, is_made_by_us, read_mark
from autoscaler.domain.facts.plan import Adopt, Cordon, DeleteNode, FreeSlot, Held
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import (
    SIDE,
    ControllerView,
    Instance,
    InstanceState,
    Node,
    OfflineCause,
    Record,
    RecordState,
    Snapshot,
)
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.situation import Situation, cordon
from autoscaler.domain.situation.states import DISCONNECT_GRACE_SECONDS, Condition

# Static nodes, which an operator made beforehand for any instance. We never create or delete one.
#
# A slot is free while it waits for its agent and nothing else is known of it. It is taken together with the record of the
# instance, and left when that record is closed: after EC2 said that the machine has ended, long enough ago for Jenkins to
# have noticed, and after our own mark was taken from it.


# A connection that nobody closed is noticed by Jenkins' own pings within this; until then a slot brought back online may look
# connected, and be given a build that no machine runs.
SLOT_REST_SECONDS = 300.0
# What a tag of EC2 can hold and the bootstraps' few lines of parsing can read: 256 characters, no quote, backslash or control.
_TELLABLE = re.compile(r"""[^"\\\x00-\x1f\x7f]{1,256}""")


def free_slots(view: ControllerView, fleet: Fleet, records: Iterable[Record]) -> dict[str, list[Node]]:
    """Find the free static nodes, by pool: not connected, not marked by anybody, not taken.

    An item that waits for a free slot by name is no reason against it: of a label that one node has, Jenkins tells only the node.
    """
    taken = {record.node for record in records if record.controller == view.name and record.state is not RecordState.GONE}
    free: dict[str, list[Node]] = {}
    for node in view.nodes:
        pool = None if is_made_by_us(fleet, node) else fleet.pool_of_slot(view.name, node.labels)
        if (
            pool
            and node.offline
            and not node.temporarily_offline
            and node.idle
            and node.name not in taken
            and _TELLABLE.fullmatch(node.name)
        ):
            free.setdefault(pool.name, []).append(node)
    return free


def slots_left(situation: Situation, controller: str) -> dict[str, int] | None:
    """Count the static nodes that are neither taken nor launched for, by pool; None where nodes are made on demand."""
    if controller not in situation.fleet.slot_controllers:
        return None
    free = free_slots(situation.snapshot.controllers[controller], situation.fleet, situation.snapshot.records)
    left = {name: len(free.get(name, ())) for name in situation.pools_of(controller)}
    for agent in situation.agents:
        boots = agent.phase is Phase.REQUESTED or (agent.phase is Phase.RESERVED and agent.record.state is RecordState.REQUESTED)
        # One whose pool left the controller meanwhile takes none.
        if agent.record.controller == controller and agent.pool.name in left and boots and not agent.instance_ended:
            left[agent.pool.name] -= 1
    for pool, _, agents in situation.expected(controller, with_reserved=True):
        left[pool] -= agents
    return left


def is_slot_left(agent: Agent) -> bool:
    """Tell whether a static node is as it was before its instance took it, as far as that is up to us."""
    return agent.node is None or (agent.mark is None and agent.idle and not _is_of_monitor(agent.node))


def _is_of_monitor(node: Node) -> bool:
    """Tell whether a monitor marked a slot: for the machine that had it, and no monitor brings a slot without a machine back."""
    return node.temporarily_offline and node.cause is OfflineCause.OTHER


def leave_slot(situation: Situation, agent: Agent, ended_since: float) -> Iterator[FreeSlot | Cordon | Held]:
    """Free the static node of an instance that has ended. A monitor's mark of it gives way to ours, which the next pass takes back."""
    if agent.node is None:
        return
    name = agent.node.name
    if not agent.idle:
        detail = f"a build waits on slot {name} for a machine that is gone; it waits in vain, abort it"
        yield Held(pool=agent.pool.name, controller=agent.record.controller, reason=Reason.STILL_BUSY, detail=detail)
    elif not agent.machine_gone or situation.now - ended_since < SLOT_REST_SECONDS:
        return
    elif _is_of_monitor(agent.node):
        detail = f"a monitor marked slot {name} for {agent.record.instance_id}, which has ended"
        yield replace(cordon(situation, agent, MarkClass.MONITOR, Reason.SLOT_LEFT_OFFLINE, detail), over_monitor=True)
    else:
        yield FreeSlot(
            controller=agent.record.controller,
            pool=agent.pool.name,
            node=name,
            instance_id=agent.record.instance_id,
            fate=agent.instance,
            mark=agent.mark,
            reason=Reason.INSTANCE_GONE,
            detail=f"EC2 says that its instance {agent.record.instance_id} has ended",
        )


def free_left_slot(controller: str, pool: str, node: str, mark: Mark) -> FreeSlot:
    """Free a static node that no instance has."""
    return FreeSlot(
        controller=controller,
        pool=pool,
        node=node,
        instance_id=None,
        fate=None,
        mark=mark,
        reason=Reason.SLOT_LEFT_OFFLINE,
        detail="it carries our mark, and no instance has it",
    )


def left_offline(situation: Situation) -> Iterator[tuple[str, Node, Mark]]:
    """Find slots that carry our mark though no record and no living instance has them: the state was lost, or a pass cut off."""
    if situation.snapshot.unread_records:
        return  # a record that cannot be read may have any slot
    known = _known(situation.snapshot)
    for controller, node in situation.believed_nodes():
        mark = read_mark(node.reason, situation.fleet.name)
        is_slot = situation.fleet.ownership_label in node.labels and not is_made_by_us(situation.fleet, node)
        if mark and is_slot and node.cause is OfflineCause.PERSON and node.idle and (controller, node.name) not in known:
            yield controller, node, mark


def _known(snapshot: Snapshot) -> set[tuple[str, str | None]]:
    """The nodes that a record or a living instance has, by controller and name."""
    recorded = {(record.controller, record.node) for record in snapshot.records if record.state is not RecordState.GONE}
    return recorded | {(instance.controller, instance.node) for instance in snapshot.instances if not instance.state.ended}


def unrecorded_seen(situation: Situation) -> dict[str, Condition]:
    """Name every credible orphan: a record, a look or a node may be late."""
    seen = {instance.id: Condition.STRAY for instance in _strays(situation)}
    seen |= {f"{controller}/{node.name}": Condition.ORPHAN for controller, node, _ in _orphans(situation)}
    return seen | {f"{controller}/{node.name}": Condition.ORPHAN for controller, node, _ in left_offline(situation)}


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
        if fact and situation.seen_seconds(controller, fact.first_at) >= _doubtful_seconds(situation, controller, node):
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
