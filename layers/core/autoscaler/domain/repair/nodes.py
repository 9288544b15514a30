"""Nodes in Jenkins: beacons, labels, agents that builds are bound to, static nodes; and nodes and instances without a record."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from math import inf

from autoscaler.domain.facts.fleet import HELD_LABEL, HOST, Fleet
from autoscaler.domain.facts.memory import Observation
from autoscaler.domain.facts.nodes import (
    Mark,
    MarkClass,
    Room,
    are_as_wanted,
    beacon_labels,
    beacon_specs,
    class_of,
    described_instance,
    is_held_as_wanted,
    is_made_by_us,
    read_mark,
    room_on,
)
from autoscaler.domain.facts.orders import text_of
from autoscaler.domain.facts.plan import Adopt, Cordon, CreateBeacon, DeleteNode, FreeSlot, Held, Relabel, RemoveBeacon, Uncordon
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
from autoscaler.domain.grouping import grouped
from autoscaler.domain.situation.agents import FORGOTTEN_AFTER_SECONDS, FORGOTTEN_BUSY_AFTER_SECONDS, Agent, Phase
from autoscaler.domain.situation.left import is_controller_left
from autoscaler.domain.situation.situation import Decided, Situation, cordon, hold_back, leaving, uncordon
from autoscaler.domain.situation.states import DISCONNECT_GRACE_SECONDS, Condition
from autoscaler.domain.situation.wants import Want
from autoscaler.domain.wording import counted, listed


def keep_beacons(situation: Situation, controller: str, _decided: Decided) -> Decided:
    """Create missing beacons, so that the queue names labels, and delete those whose labels no pool gives any more."""
    view = situation.snapshot.controllers[controller]
    if not view.complete:
        return
    wanted = {spec.name: spec for spec in beacon_specs(situation.fleet, controller)}
    there = {node.name: node for node in view.nodes if situation.fleet.is_beacon(node.name)}
    for name, spec in wanted.items():
        if name not in there:
            yield CreateBeacon(controller=controller, spec=spec, reason=Reason.BEACON, detail=name)
    for name, node in there.items():
        given = frozenset(wanted[name].labels) - {name} if name in wanted else None
        is_right = given == beacon_labels(name, node.description, node.labels) and given <= node.labels
        if not is_right and node.offline and node.idle and not node.builds:
            yield RemoveBeacon(controller=controller, node=name, reason=Reason.BEACON_LEFT, detail=name)


def relabels(situation: Situation, decided: Decided) -> Iterator[Relabel]:
    """Restore labels of nodes after a pass that was cut off; let them have as many executors as builds fit, and no labels where none does.

    Never on a person's mark, which would be erased; and not where something else is done with a node's labels in this pass.
    """
    changed = {(step.controller, step.node) for step in decided if isinstance(step, Cordon)}
    for agent in situation.agents:
        if agent.node and (agent.record.controller, agent.node.name) not in changed and (step := _relabel(situation, agent, agent.node)):
            yield step


def relabels_for_holds(situation: Situation, controller: str, decided: Decided) -> Iterator[Relabel]:
    """Take labels that people hold, and give back those that nobody holds any more, before anything is launched for jobs that wait."""
    nodes = situation.snapshot.controllers[controller].nodes
    if not (situation.fleet.held_labels or any(HELD_LABEL in node.labels for node in nodes)):
        return
    changed = {step.node for step in decided if isinstance(step, Cordon | Uncordon) and step.controller == controller}
    for agent, node in ((agent, agent.node) for agent in situation.agents if agent.record.controller == controller):
        if node and node.name not in changed:
            is_right = agent.record.cordon or is_held_as_wanted(agent.record, node, situation.fleet, situation.now)
            if not is_right and (step := _relabel(situation, agent, node)):
                yield step


def _relabel(situation: Situation, agent: Agent, node: Node) -> Relabel | None:
    """Decide whether a node's labels and executors are set anew; None if they are as they are to be, or not ours to change."""
    fleet, record = situation.fleet, agent.record
    # Beside builds that have ended its executors cannot be counted.
    is_unclear = bool(node.ended) and (bool(fleet.weights) or record.by_weight)
    if not record.labels or node.temporarily_offline or is_unclear or node.is_deleted:
        return None
    if HELD_LABEL in node.labels and situation.overrides.are_unknown:
        return None
    heaviest = _heaviest(situation, agent)
    room = room_on(record, node, fleet, heaviest.weight if heaviest else 1)
    if are_as_wanted(record, node, fleet, situation.now, room) or situation.no_giving_up(record.controller):
        return None
    reason, detail = _why_relabelled(situation, agent, node, room, heaviest)
    return Relabel(
        controller=record.controller,
        pool=agent.pool.name,
        node=node.name,
        instance_id=record.instance_id,
        reason=reason,
        detail=detail,
        weight=heaviest.weight if heaviest else 1,
    )


def _heaviest(situation: Situation, agent: Agent) -> Want | None:
    """Find the heaviest item that waits for an agent of this pool; None where none weighs more than an executor."""
    demand = situation.demands.get(agent.record.controller) if situation.fleet.weights else None
    wants = demand.wants if demand else ()
    held = situation.fleet.weights.of_running  # what Jenkins itself finds room for needs none kept
    mine = (want for want in wants if held(want.item.job) > 1 and any(pool.name == agent.pool.name for pool in want.pools))
    return max(mine, key=lambda want: want.weight, default=None)


def _why_relabelled(situation: Situation, agent: Agent, node: Node, room: Room | None, heaviest: Want | None) -> tuple[Reason, str]:
    is_without = bool(agent.record.cordon) or (room is not None and room.is_full)
    if not is_without and not is_held_as_wanted(agent.record, node, situation.fleet, situation.now):
        labels = situation.fleet.held_labels.intersection(agent.record.labels)
        if not labels:
            return Reason.LABELS_RELEASED, f"nobody holds labels of {node.name} any more"
        holds = text_of(situation.overrides.holds_of(labels), situation.now)
        return Reason.LABELS_HELD, f"{node.name} is without {listed(sorted(labels))}: {holds}"
    if room is None or agent.record.cordon:
        reason = Reason.LABELS_TAKEN if agent.record.cordon else Reason.LABELS_TO_GIVE_BACK
        return reason, f"the labels of {node.name} are not what its record says"
    waits = f", and {heaviest.item.job}, which weighs {heaviest.weight}, waits" if heaviest else ""
    detail = f"the builds on {node.name} weigh {room.taken} of {room.of}{waits}"
    return (Reason.FULL, detail) if room.is_full else (Reason.HAS_ROOM, f"{detail}: {counted(room.executors, 'executor')}")


# Uncordon at once agents that a build may be bound to: a build that waits for a cordoned agent waits forever.
#
# A mark that is only for now (retire) is undone for good. What was drained for good comes back only after a restart of its
# controller, while the pipeline that it held waits there by name: once that one has resumed, it is drained again. So does an agent that
# is only outdated, for any item that asks for it by name.


_DRAINED = (Phase.DRAINING, Phase.RESERVED)
# EC2 takes it away; what a limit of the month or the day stopped comes back with everything else that a build is bound to.
_OF_LIMITS = (MarkClass.MONTH_LIMIT, MarkClass.DAY_LIMIT)
_NOT_TO_RESUME = (MarkClass.INTERRUPTED, *_OF_LIMITS)


def pinned(situation: Situation, controller: str) -> list[Agent]:
    """Agents that come back whatever the queue needs.

    They carry our retire mark though a build may be bound to them (a queue item names it, or it was busy before a restart), or were
    stopped by the limit of a month or a day, which holds no more.
    """
    if not situation.snapshot.controllers[controller].complete:
        return []
    out_of_use = (agent for agent in situation.out_of_use if agent.record.controller == controller)
    return [agent for agent in out_of_use if (agent.phase is Phase.RETIRING and situation.protected(agent)) or comes_back(situation, agent)]


def bring_back_pinned(situation: Situation, controller: str, _decided: Decided) -> Iterator[Uncordon]:
    """Uncordon agents that a build is bound to."""
    for agent in pinned(situation, controller):
        if agent.record.node in situation.demands[controller].pins:
            yield uncordon(agent, Reason.PINNED, f"a queue item waits for {agent.record.node} by name")
        elif situation.protected(agent):
            yield uncordon(agent, Reason.BUSY_BEFORE_RESTART, f"{agent.record.node} may hold a build of before {controller} restarted")
        elif agent.mark and agent.mark.kind is MarkClass.DAY_LIMIT:
            yield uncordon(agent, Reason.NEW_DAY, "the hours of the day's limit are used no more")
        else:
            yield uncordon(agent, Reason.MONTH_LIMIT_LIFTED, "the month's limit holds no more")


def let_resume(situation: Situation, controller: str, _decided: Decided) -> Iterator[Uncordon]:
    """Temporarily uncordon drained agents that a build is bound to, except those that EC2 interrupts."""
    for agent in _of(situation, controller):
        if agent.phase not in _DRAINED or agent.mark is None or agent.mark.kind in _NOT_TO_RESUME:
            continue
        name = agent.record.node or ""
        if name not in situation.demands[controller].pins:
            continue
        if situation.waits_to_resume(agent):
            yield uncordon(agent, Reason.BUSY_BEFORE_RESTART, f"{name} was drained when {controller} restarted, its build waits for it")
        elif agent.mark.kind is MarkClass.OUTDATED and not agent.instance_ended:
            yield uncordon(agent, Reason.PINNED, f"a queue item waits for {name} by name, and no other agent can take it")


def drain_again(situation: Situation, controller: str, decided: Decided) -> Iterator[Cordon]:
    """Drain again the temporarily uncordoned agents whose builds have resumed. ``cordoned``: by this pass already."""
    taken = leaving(decided, controller)
    for agent in _of(situation, controller):
        owed = situation.past(agent).owed
        if not owed or agent.phase is not Phase.READY or agent.record.node in taken:
            continue
        if not (situation.waits_to_resume(agent) or agent.record.node in situation.demands[controller].pins):
            detail = f"{agent.record.node} came back only for the build that waited for it"
            yield cordon(situation, agent, class_of(owed), Reason.DRAINED_BEFORE_RESTART, detail)


# What they are for cordons again by itself, for as long as it holds.
_AGAIN_BY_THEMSELVES = (*_OF_LIMITS, MarkClass.ROTATE, MarkClass.OUTDATED)


def note_owed(situation: Situation, decided: Decided) -> dict[str, str]:
    """Remember the class in which each of these agents is to be drained again."""
    back = {(step.controller, step.node) for step in decided if isinstance(step, Uncordon)}
    known = {agent.record.instance_id: situation.past(agent).owed for agent in situation.agents}
    drained = (
        agent for agent in situation.agents if agent.phase is Phase.DRAINING and (agent.record.controller, agent.record.node) in back
    )
    marks = ((agent.record.instance_id, agent.mark.kind) for agent in drained if agent.mark)
    known |= {name: str(kind) for name, kind in marks if kind not in _AGAIN_BY_THEMSELVES}
    return {name: kind for name, kind in known.items() if kind}


def _of(situation: Situation, controller: str) -> list[Agent]:
    complete = situation.snapshot.controllers[controller].complete
    return [agent for agent in situation.agents if complete and agent.record.controller == controller]


def comes_back(situation: Situation, agent: Agent) -> bool:
    """Tell whether an agent that was stopped takes builds again: the limit holds no more, or a build is bound to it that must end."""
    if agent.phase is not Phase.DRAINING or agent.mark is None or agent.mark.kind not in _OF_LIMITS or agent.instance_ended:
        return False
    on_hold = bool(situation.overrides.holds_of_people_on(agent.record.controller, agent.pool.name))
    return situation.protected(agent) or not (situation.stopped_by(agent.pool.name) or on_hold)


# Controllers that left the fleet file: nobody sees their builds, so nothing of theirs is ended, and a person decides.


def left_controllers(situation: Situation, _decided: Decided) -> Iterator[Held]:
    """Name the agents, and the instances without a record, whose controller left the fleet file."""
    for agent in agents_unseen_for_ever(situation):
        name = agent.record.node or agent.record.instance_id
        yield hold_back(agent, Reason.NOT_OURS, f"{name} ({agent.record.instance_id}): {what_to_do(agent.record.controller)}")
    for instance in strays_unseen_for_ever(situation):
        detail = f"{instance.id} has no record: {what_to_do(instance.controller)}"
        yield Held(pool=instance.pool, controller=instance.controller, reason=Reason.NOT_OURS, detail=detail)


def agents_unseen_for_ever(situation: Situation) -> Iterator[Agent]:
    """Find the agents whose controller left the fleet file, and whose machine may still be there."""
    return (agent for agent in situation.agents if not agent.machine_gone and is_controller_left(situation, agent.record.controller))


def strays_unseen_for_ever(situation: Situation) -> Iterator[Instance]:
    """Find the instances without a record whose controller left the fleet file: they are not adopted."""
    recorded = {record.machine for record in situation.snapshot.records} | set(situation.snapshot.unread_records)
    for instance in situation.snapshot.instances:
        is_stray = instance.id not in recorded and not instance.state.ended and instance.launch not in situation.snapshot.unread_launches
        if is_stray and is_controller_left(situation, instance.controller):
            yield instance


def what_to_do(controller: str) -> str:
    """Say why it is kept, and what a person can do about it."""
    return f"its controller {controller} left the fleet file, so nobody sees its builds; put the controller back, or end the instance"


# Orphans: our instances and nodes without a record, after a lost state or a cut-off pass; and static nodes, which are taken and left.


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
    idle = (node for node in view.nodes if node.offline and node.idle and not node.temporarily_offline and node.name not in taken)
    slots = (node for node in idle if _TELLABLE.fullmatch(node.name) and not is_made_by_us(fleet, node))
    return grouped((pool.name, node) for node in slots if (pool := fleet.pool_of_slot(view.name, node.labels)))


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
    for pool, _, agents in situation.expected(controller, every=True):
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


def left_offline(situation: Situation) -> Iterator[tuple[str, Node, Mark]]:
    """Find slots that carry our mark though no record and no living instance has them: the state was lost, or a pass cut off."""
    if situation.snapshot.unread_records:
        return  # a record that cannot be read may have any slot
    # By a record, or by a living instance.
    accounted = _recorded(situation.snapshot) | {(one.controller, one.node) for one in situation.snapshot.instances if not one.state.ended}
    for controller, node in situation.believed_nodes():
        mark = read_mark(node.reason, situation.fleet.name)
        is_slot = situation.fleet.ownership_label in node.labels and not is_made_by_us(situation.fleet, node)
        if mark and is_slot and node.cause is OfflineCause.PERSON and node.idle and (controller, node.name) not in accounted:
            yield controller, node, mark


def _recorded(snapshot: Snapshot) -> set[tuple[str, str | None]]:
    """The nodes that a record has, by controller and name."""
    return {(record.controller, record.node) for record in snapshot.records if record.state is not RecordState.GONE}


def unrecorded_seen(situation: Situation) -> dict[str, Condition]:
    """Name every credible orphan: a record, a look or a node may be late."""
    seen = {instance.id: Condition.STRAY for instance in _strays(situation)}
    seen |= {f"{controller}/{node.name}": Condition.ORPHAN for controller, node, _ in _orphans(situation)}
    return seen | {f"{controller}/{node.name}": Condition.ORPHAN for controller, node, _ in left_offline(situation)}


def take_in(situation: Situation, facts: Mapping[str, Observation]) -> Iterator[Adopt | FreeSlot | DeleteNode | Cordon]:
    """Adopt instances, so that the other rules judge them; free static nodes; delete nodes of instances that are gone."""
    for instance in _strays(situation):
        if instance.id in facts:
            # EC2 shows the name that we gave it, or the node's description names the instance.
            name = instance.node or node_named_after(situation, instance.controller, instance.id)
            yield Adopt(
                controller=instance.controller,
                pool=instance.pool,
                instance_id=instance.id,
                node=name,
                reason=Reason.UNKNOWN_INSTANCE,
                detail=f"{instance.id} carries our tags and has no record; {f'its node is {name}' if name else 'it has no node'}",
            )
    for controller, node, mark in left_offline(situation):
        if f"{controller}/{node.name}" in facts:
            pool = situation.fleet.pool_of_slot(controller, node.labels)
            yield FreeSlot(
                controller=controller,
                pool=pool.name if pool else "",
                node=node.name,
                instance_id=None,
                fate=None,
                mark=mark,
                reason=Reason.SLOT_LEFT_OFFLINE,
                detail="it carries our mark, and no instance has it",
            )
    for controller, node, instance_id in _orphans(situation):
        if fact := facts.get(f"{controller}/{node.name}"):
            yield from _end_orphan(situation, controller, node, instance_id, situation.seen_seconds(controller, fact.first_at))


def _end_orphan(situation: Situation, controller: str, node: Node, instance_id: str, seen_seconds: float) -> Iterator[DeleteNode | Cordon]:
    """Delete the node of an instance that is gone. What waits for it, or seems to run there, waits in vain, and Jenkins learns of it so.

    A host that has left the fleet file goes on, and so do its builds: its node is marked first, and the mark hides that it is connected.
    """
    is_host = instance_id.startswith(HOST)
    detail = f"{instance_id} has left the fleet file" if is_host else f"EC2 says that its instance {instance_id} is gone"
    if not node.offline:
        mark = Mark(fleet=situation.fleet.name, kind=MarkClass.RETIRE, pass_id=situation.snapshot.pass_id)
        yield Cordon(controller=controller, pool="", node=node.name, mark=mark, reason=Reason.LEFT_THE_FILE, detail=detail)
        return
    may_run, is_unused = is_host and node.temporarily_offline, node.idle and node.name not in situation.demands[controller].pins
    if seen_seconds >= (0.0 if is_unused else inf if may_run and not node.idle else DISCONNECT_GRACE_SECONDS):
        yield DeleteNode(
            controller=controller,
            pool="",
            node=node.name,
            instance_id=instance_id,
            fate=situation.snapshot.fates.get(instance_id, InstanceState.TERMINATED),
            though_busy=situation.forgotten.get(instance_id, 0.0) >= FORGOTTEN_BUSY_AFTER_SECONDS,
            reason=Reason.INSTANCE_GONE,
            detail=detail,
        )


def node_named_after(situation: Situation, controller: str, instance_id: str) -> str | None:
    """Find the node of ours whose description names this instance. Its labels may have been edited by a person."""
    nodes = situation.snapshot.controllers[controller].nodes
    return next((node.name for node in nodes if described_instance(situation.fleet, node.name, node.description) == instance_id), None)


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


def _orphans(situation: Situation) -> Iterator[tuple[str, Node, str]]:
    """Nodes that we made and that have no record, offline and not by a person, with their instances, which EC2 says are gone.

    One of a host that has left the fleet file may be online.
    """
    recorded = _recorded(situation.snapshot)
    for controller, node in situation.believed_nodes():
        by_a_person = node.temporarily_offline and read_mark(node.reason, situation.fleet.name) is None
        if (controller, node.name) in recorded or node.is_deleted or by_a_person:
            continue
        instance_id = described_instance(situation.fleet, node.name, node.description)
        if instance_id is not None and (node.offline or instance_id.startswith(HOST)) and _is_gone(situation, node, instance_id):
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
    after_seconds = FORGOTTEN_AFTER_SECONDS if node.idle and not node.builds else FORGOTTEN_BUSY_AFTER_SECONDS
    is_forgotten = fate is InstanceState.NOT_FOUND and situation.forgotten.get(instance_id, 0.0) >= after_seconds
    return fate is InstanceState.TERMINATED or is_forgotten
