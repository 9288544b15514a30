"""Ends agents: their machines, their nodes, their records.

EC2 and Jenkins are asked once more before anything is done.

A node is deleted once. Jenkins goes on listing it while a pipeline is on it, and ends that pipeline
five minutes later. A second deletion would take the pipeline's executor away: then nobody ends it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from autoscaler.control import nodes
from autoscaler.control.outcomes import Result
from autoscaler.control.steps.acting import Acting, done, skipped
from autoscaler.domain.facts.fleet import HOST, Fleet, Share
from autoscaler.domain.facts.metering import handed_back
from autoscaler.domain.facts.nodes import has_static_node, is_made_for, is_wanted, read_mark
from autoscaler.domain.facts.plan import DeleteNode, Forget, FreeSlot, Stop, Terminate, Terminated
from autoscaler.domain.facts.snapshot import SIDE, InstanceState, Node, Record, RecordState
from autoscaler.errors import AutoscalerError, StuckError

_GIVEN_UP = (RecordState.CONDEMNED, RecordState.GONE)
# What an earlier pass wrote it may have acted on: it is not taken back.
_NOT_ACTED_ON = (RecordState.REQUESTED, RecordState.REGISTERED)


def terminate(acting: Acting, step: Terminate) -> Result:
    """Condemn the record, read the node once more, terminate, delete the node.

    Cut off anywhere, the next pass goes on. The read comes last: whoever brings the node online
    before it is seen, and what was given up is then drained again.
    """
    compute = acting.ports.compute
    if step.controller not in acting.controllers:
        # It left the fleet file, and a person ordered this: nobody can read the node.
        _condemn(acting, step.instance_id)
        _end(acting, step.instance_id)
        return done(step)
    record = acting.records[step.instance_id]
    is_stopped = record.state is RecordState.STOPPED
    if is_stopped and (fate := compute.fate(step.instance_id)) is not InstanceState.STOPPED:
        return skipped(step, f"its instance is {fate}")
    _condemn(acting, step.instance_id)
    if keep := last_read(acting, step, record):
        return skipped(step, keep)
    if not record.is_instance:
        return _disconnect(acting, step)
    _end(acting, step.instance_id)
    # A slot stays cordoned until its machine has surely ended: online again, it would take builds
    # at once.
    if step.node is not None and not has_static_node(record):
        _delete_node(acting, step.controller, step.node, step.instance_id)
    return done(step)


def _end(acting: Acting, instance_id: str) -> None:
    try:
        acting.ports.compute.terminate(instance_id)
    except StuckError as error:
        acting.effects.append(Terminated(instance_id=instance_id, refused=str(error)))
        raise
    acting.effects.append(Terminated(instance_id=instance_id))


def _disconnect(acting: Acting, step: Terminate) -> Result:
    """Delete the node, which ends the connection.

    A host that is still in the fleet file asks anew who it is.
    """
    record, now = acting.records[step.instance_id], acting.ports.clock()
    controller = acting.controllers[step.controller]
    node = controller.node(step.node) if step.node is not None else None
    if node is not None and is_made_for(acting.fleet, record, node):
        controller.delete_node(node.name)
    if is_wanted(acting.fleet, record):
        acting.note(
            step.instance_id,
            lambda read: handed_back(read, now) if read.state is record.state else None,
        )
    else:
        acting.write_as(record, RecordState.GONE)
    return done(step)


def delete_node(acting: Acting, step: DeleteNode) -> Result:
    """Delete a node whose instance is gone, as EC2 says again, and to which nobody is connected."""
    record = acting.records.get(step.instance_id)
    if record is not None and has_static_node(record):
        return skipped(step, "its node is its operator's")
    fate = _fate(acting, step.instance_id)
    if not _confirms(fate, step.fate):
        return skipped(step, f"its instance is {fate}")
    if keep := nodes.may_delete(acting.controllers[step.controller], step):
        return skipped(step, keep)
    _condemn(acting, step.instance_id)
    _delete_node(acting, step.controller, step.node, step.instance_id)
    return done(step)


def free_slot(acting: Acting, step: FreeSlot) -> Result:
    """Bring a slot back online if it still carries our mark; other marks stay.

    Only once EC2, asked again by id, says that its instance has ended.
    """
    if step.instance_id is not None:
        fate = acting.ports.compute.fate(step.instance_id)
        if not _confirms(fate, step.fate):
            return skipped(step, f"its instance is {fate}")
    _condemn(acting, step.instance_id or "")
    controller = acting.controllers[step.controller]
    node = controller.node(step.node)
    if node is not None and step.mark is not None and nodes.carries(node, step.mark):
        if not node.idle:
            return skipped(step, "a build is on it")
        controller.toggle_offline(step.node, step.mark.text)
    return done(step)


def forget(acting: Acting, step: Forget) -> Result:
    """Close a record, once what this pass has to remember of it is saved."""
    if not acting.is_remembered:
        return skipped(step, "its launch could not be noted; the next pass closes it")
    acting.write_as(acting.records[step.instance_id], RecordState.GONE)
    return done(step)


def _delete_node(acting: Acting, controller: str, node: str, instance_id: str) -> None:
    """Delete a node, and note on its record that Jenkins has answered."""
    acting.controllers[controller].delete_node(node)
    now = acting.ports.clock()

    def without_node(record: Record) -> Record | None:
        binding = record.bindings[0]
        has_it = (binding.controller, binding.node) == (controller, node)
        return record.without_node(now) if has_it and not binding.deleted_at else None

    acting.note(instance_id, without_node)


def _condemn(acting: Acting, instance_id: str) -> None:
    record = acting.records.get(instance_id)
    if record is not None and record.state not in _GIVEN_UP:
        acting.write_as(record, RecordState.CONDEMNED)


def _fate(acting: Acting, instance_id: str) -> InstanceState:
    """Ask EC2 for the instance of a record. A host is there as long as it has a record."""
    machine, _, _ = instance_id.partition(SIDE)
    if not machine.startswith(HOST):
        return acting.ports.compute.fate(machine)
    known = any(record.machine == machine for record in acting.records.values())
    return InstanceState.RUNNING if known else InstanceState.TERMINATED


def _confirms(answer: InstanceState, said: InstanceState | None) -> bool:
    """Tell whether EC2, asked again, says the same of an instance.

    What has terminated may be left out of an answer.
    """
    return answer is said or (said, answer) == (InstanceState.TERMINATED, InstanceState.NOT_FOUND)


# The last read before a machine is ended or stopped.


def last_read(acting: Acting, step: Terminate | Stop, before: Record) -> str | None:
    """Say why the instance must be kept after all.

    Nothing was sent yet, so its record is restored, and it may reconnect.
    """
    try:
        keep = None
        if step.node is not None:
            ended = step.ended if isinstance(step, Terminate) else ()
            controller = acting.controllers[step.controller]
            keep = nodes.may_terminate(controller, step.node, step.mark, ended)
        keep = keep or used_elsewhere(acting, before)
    except AutoscalerError:
        if step.node is not None:
            restore(acting, before)
        raise
    if keep:
        restore(acting, before)
    return keep


def restore(acting: Acting, before: Record) -> None:
    """Restore a record that this step changed.

    One that an earlier pass changed stays: what it wrote may have been sent. What leaves a node for
    another controller runs: nothing was sent.
    """
    if before.state not in _NOT_ACTED_ON and not before.leaves:
        return
    changed = acting.records[before.instance_id].state
    at = acting.ports.clock()
    acting.note(
        before.instance_id,
        lambda read: (
            replace(read, state=before.state, changed_at=at) if read.state is changed else None
        ),
    )


def used_elsewhere(acting: Acting, record: Record) -> str | None:
    """Say where else a machine is used.

    None: its nodes on all other controllers are out of use, idle, or not there.

    By the node's name, which is the same everywhere, and not by records: one may have been lost.
    """
    if not record.is_instance:
        return None
    of_machine = [one for one in acting.records.values() if one.machine == record.machine]
    had = ((name, None) for name in _had_nodes_on(of_machine, record))
    others = _others(acting.fleet, of_machine, record) if record.node is not None else set()
    left = [(binding.controller, binding.node) for binding in record.leaves]
    for name, node in [*had, *((name, record.node) for name in sorted(others)), *left]:
        controller = acting.controllers.get(name)
        if controller is None:
            return f"{name} is not in the fleet file any more, so nobody knows what runs there"
        if node is not None and (why := _why_used(controller.node(node), acting.fleet)):
            return f"on {name} {why}"
    return None


def _had_nodes_on(of_machine: Iterable[Record], record: Record) -> Iterator[str]:
    """Name the controllers on which the machine has a node, or had it when it began to leave.

    Without the one of this record.
    """
    for other in (one for one in of_machine if one.state is not RecordState.GONE):
        own = other.bindings if other.instance_id != record.instance_id else ()
        bindings = (*own, *other.leaves)
        yield from (binding.controller for binding in bindings if binding.node is not None)


def _others(fleet: Fleet, of_machine: Iterable[Record], record: Record) -> set[str]:
    pool = fleet.pools.get(record.pool) or fleet.left_pools.get(record.pool)
    at_once = pool.controllers if pool and pool.share is Share.COOPERATIVE else ()
    return {*at_once, *(one.controller for one in of_machine)} - {record.controller}


def _why_used(node: Node | None, fleet: Fleet) -> str | None:
    if node is None:
        return None
    is_marked = node.temporarily_offline and read_mark(node.reason, fleet.name) is None
    return nodes.first_of(
        (not node.offline, "its node is online"),
        (is_marked, f"somebody marked its node offline: {node.reason!r}"),
        (not node.idle or node.builds, "a build is on it"),
    )
