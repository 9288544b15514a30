"""Reserves agents: the record says so first, then builds are kept away. Cut off in between, the next pass marks the node."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from autoscaler.control import nodes
from autoscaler.control.nodes import Cordons
from autoscaler.control.outcomes import Outcome, Result
from autoscaler.domain.facts.fleet import HELD_LABEL, Fleet, NodeSpec, Pool, Share
from autoscaler.domain.facts.nodes import Mark, MarkClass, drops_handed_builds, labels_wanted, read_mark
from autoscaler.domain.facts.plan import Cordon, EndReservation, Reserve, ReserveDevice
from autoscaler.domain.facts.snapshot import SIDE, Node, Record, RecordState
from autoscaler.domain.report.told import at_work
from autoscaler.errors import ConfigError
from autoscaler.ports import Controller

# In the mark of a node that was made for a person: no pass has set it.
_AT_REGISTRATION = "registration"


def reserve(cordons: Cordons, step: Reserve) -> Result:
    """Note for whom an agent is, take its labels, so that no job waits for it by one, and mark it offline.

    On a Jenkins that may drop a build in the instant of the mark, a later pass sets it.
    """
    before = cordons.controller.node(step.node)
    if step.instance_id not in cordons.records.now or before is None:
        return Result(step=step, outcome=Outcome.SKIPPED, detail="the node is not there any more")
    if why := _why_not(step, before):
        return Result(step=step, outcome=Outcome.SKIPPED, detail=why)

    def for_a_person(record: Record) -> Record | None:
        if record.state is not RecordState.REGISTERED or record.node != step.node or record.reservation:
            return None
        by_labels = bool(record.labels) and not before.temporarily_offline
        return replace(record, reservation=step.reservation, cordon=step.mark.text if by_labels else record.cordon)

    reserved = cordons.records.note(step.instance_id, for_a_person)
    if reserved is None or reserved.reservation != step.reservation:
        return Result(
            step=step, outcome=Outcome.SKIPPED, detail="the agent was given up, or reserved for somebody else, at the same moment"
        )
    if reserved.cordon == step.mark.text and _labels_taken(cordons, reserved, before) and drops_handed_builds(cordons.view):
        return Result(step=step, outcome=Outcome.DONE, detail=at_work(before))
    result = nodes.cordon(cordons.controller, _cordon(step))
    return Result(step=step, outcome=Outcome.FAILED, detail=result.detail) if result.outcome is not Outcome.DONE else _done(cordons, step)


def _why_not(step: Reserve, node: Node) -> str | None:
    """Say why an agent is not reserved after all: somebody was quicker."""
    if node.temporarily_offline and not (step.replaces and nodes.carries(node, step.replaces)):
        return f"somebody marked it offline first: {node.reason!r}"
    if not step.though_busy and (node.offline or not node.idle or node.builds):
        return "a build has begun there, or it is not connected any more; ask again for another one"
    return None


def _labels_taken(cordons: Cordons, record: Record, before: Node) -> bool:
    """Take its labels; where that is not allowed, the mark alone keeps builds away."""
    try:
        cordons.set_labels(record, before)
    except ConfigError as error:
        cordons.give_back(record, "")
        cordons.log("reserved_with_labels", controller=cordons.controller.name, node=before.name, error=str(error))
        return False
    return True


def _cordon(step: Reserve) -> Cordon:
    return Cordon(
        controller=step.controller,
        pool=step.pool,
        node=step.node,
        mark=step.mark,
        replaces=step.replaces,
        reason=step.reason,
        detail=step.detail,
    )


def _done(cordons: Cordons, step: Reserve) -> Result:
    after = cordons.controller.node(step.node)
    return Result(step=step, outcome=Outcome.DONE, detail=at_work(after) if after else "")


def reserve_device(cordons: Cordons, step: ReserveDevice) -> Result:
    """Note that a person has a device of a machine. Its agent hears of it when it asks next, and holds one for them."""

    def for_a_person(record: Record) -> Record | None:
        if record.state is not RecordState.REGISTERED:
            return None
        kept = tuple(reservation for reservation in record.devices_for if not reservation.is_over(cordons.clock()))
        return replace(record, devices_for=(*kept, step.reservation))

    record = cordons.records.note(step.instance_id, for_a_person)
    if record is None or step.reservation not in record.devices_for:
        return Result(step=step, outcome=Outcome.SKIPPED, detail="the machine is about to go")
    return Result(step=step, outcome=Outcome.DONE)


def end(cordons: Cordons, step: EndReservation) -> Result:
    """Note when a reservation ends."""
    record = cordons.records.note(step.instance_id, lambda record: _ended(record, step))
    if record is None or not (step.person or record.reservation):
        return Result(step=step, outcome=Outcome.SKIPPED, detail="it is not reserved any more")
    return Result(step=step, outcome=Outcome.DONE)


def _ended(record: Record, step: EndReservation) -> Record | None:
    if step.person:
        devices_for = (replace(one, until_at=step.until_at) if one.person == step.person else one for one in record.devices_for)
        return replace(record, devices_for=tuple(devices_for))
    return replace(record, reservation=replace(record.reservation, until_at=step.until_at)) if record.reservation else None


def out_of_use(record: Record, fleet: Fleet) -> Record:
    """Note of an instance that registers for a person that its node has none of the labels that jobs ask for."""
    return replace(record, cordon=_mark(fleet).text) if record.reservation and record.labels else record


def node_of(record: Record, spec: NodeSpec, fleet: Fleet, now: float) -> NodeSpec:
    """Describe the node that is made for an instance: as its pool's, without labels that people hold, or out of use for a person."""
    if record.reservation and record.cordon:
        labels, exclusive = labels_wanted(record, fleet, now)
        return replace(spec, labels=tuple(sorted(labels)), exclusive=exclusive)
    held = fleet.held_labels.intersection(spec.labels)
    return replace(spec, labels=(*sorted({*spec.labels} - held), HELD_LABEL)) if held else spec


def keep_builds_away(controller: Controller, record: Record, node: str, fleet: Fleet) -> None:
    """Mark the node of a reserved agent offline before the agent is told how to connect: no build can be handed to it ever."""
    if record.reservation is None:
        return
    there = controller.node(node)
    if there is not None and not there.temporarily_offline:
        controller.set_offline(node, _mark(fleet).text)


def _mark(fleet: Fleet) -> Mark:
    return Mark(fleet=fleet.name, kind=MarkClass.RESERVED, pass_id=_AT_REGISTRATION)


# Machines that serve several controllers at once, and hosts: which records a machine has, and whether it is used on another side.


def side_id(machine: str, controller: str) -> str:
    """Return the id of the record of a machine's side on one more controller."""
    return f"{machine}{SIDE}{controller}"


def is_wanted(fleet: Fleet, record: Record) -> bool:
    """Tell whether a host, or a further side of an instance, is still to serve that controller."""
    pool = fleet.pools.get(record.pool)
    if pool is None or record.controller not in pool.controllers:
        return False
    at_once = pool.share is Share.COOPERATIVE
    if record.is_side:
        return at_once
    host = next((one for one in fleet.hosts.values() if one.id == record.machine), None)
    return host is not None and host.pool == pool.name and (record.instance_id == host.id) is not at_once


def used_elsewhere(controllers: Mapping[str, Controller], fleet: Fleet, records: Iterable[Record], record: Record) -> str | None:
    """Say where else a machine is used; None: its nodes on all other controllers are out of use, idle, or not there.

    By the node's name, which is the same everywhere, and not by records: one may have been lost.
    """
    if not record.is_instance:
        return None
    records = tuple(records)
    if unseen := next(_unseen(controllers, records, record), None):
        return f"{unseen} is not in the fleet file any more, so nobody knows what runs there"
    others = [(name, record.node) for name in sorted(_others(fleet, records, record))] if record.node is not None else []
    for name, node in (*others, *((left.controller, left.node) for left in record.leaves)):
        controller = controllers.get(name)
        if controller is None:
            return f"{name} is not in the fleet file any more, so nobody knows what runs there"
        if node is not None and (why := _why_used(controller.node(node), fleet)):
            return f"on {name} {why}"
    return None


def _unseen(controllers: Mapping[str, Controller], records: Iterable[Record], record: Record) -> Iterator[str]:
    """Name the controllers that nobody can ask, and on which the machine has a node, or had it when it began to leave."""
    mine = [one for one in records if one.machine == record.machine and one.state is not RecordState.GONE]
    bindings = [binding for one in mine for binding in (*(one.bindings if one.instance_id != record.instance_id else ()), *one.leaves)]
    yield from (binding.controller for binding in bindings if binding.node is not None and binding.controller not in controllers)


def _others(fleet: Fleet, records: Iterable[Record], record: Record) -> Iterator[str]:
    pool: Pool | None = fleet.pools.get(record.pool) or fleet.left_pools.get(record.pool)
    at_once = pool.controllers if pool and pool.share is Share.COOPERATIVE else ()
    recorded = [one.controller for one in records if one.machine == record.machine]
    yield from {*at_once, *recorded} - {record.controller}


def _why_used(node: Node | None, fleet: Fleet) -> str | None:
    if node is None:
        return None
    if not node.offline:
        return "its node is online"
    if node.temporarily_offline and read_mark(node.reason, fleet.name) is None:
        return f"somebody marked its node offline: {node.reason!r}"
    if not node.idle or node.builds:
        return "a build is on it"
    return None
