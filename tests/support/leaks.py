"""What is surely left over in a look, and the step that repairs it: told from what was seen alone."""

from collections.abc import Iterator
from typing import NamedTuple

from autoscaler.domain.facts.plan import Adopt, DeleteNode, FinishStop, Forget, Start, Terminate
from autoscaler.domain.facts.snapshot import InstanceState, Record, RecordState
from support.builders import NOW
from support.looks import Look

_ON = {InstanceState.PENDING, InstanceState.RUNNING}
_STOPS = {RecordState.STOPPING, RecordState.STOPPED}
_ENDED = {InstanceState.TERMINATED, InstanceState.SHUTTING_DOWN}


class Leak(NamedTuple):
    """An instance whose other half is missing, or a node or a record that outlived it. ``repair``: the kind of step that is due."""

    controller: str
    pool: str
    instance_id: str
    repair: type


def leaks(look: Look) -> Iterator[Leak]:
    for record in look.snapshot.records:
        readable = look.believed(record.controller) and not look.unread(record.controller, record.node)
        if readable and (repair := _repair_of(look, record)):
            yield Leak(record.controller, record.pool, record.instance_id, repair)
    ownerless = _nodes_without_records(look)
    for instance in look.strays:
        if look.believed(instance.controller) and look.seen_twice(instance.id) and instance.id not in ownerless:
            yield Leak(instance.controller, instance.pool, instance.id, Adopt)
    for instance_id, (controller, name) in ownerless.items():
        if look.believed(controller) and look.seen_twice(f"{controller}/{name}") and name not in look.bound(controller):
            yield Leak(controller, "", instance_id, DeleteNode)


def _repair_of(look: Look, record: Record) -> type | None:
    state, node = look.states[record.instance_id], look.node(record.controller, record.node)
    if record.state in {RecordState.REQUESTED, RecordState.STARTING} and state in _ON:
        return Terminate if record.began_at <= NOW - 900.0 and look.seen_twice(record.instance_id) else None
    if record.state in _STOPS:
        return _repair_of_stopped(look, record, state)
    if node is not None:
        return DeleteNode if state is InstanceState.TERMINATED and _surely_ended(look, record) else None
    if state in _ENDED:
        return Forget
    if look.reserved(record):
        return None
    session = look.snapshot.controllers[record.controller].session
    known = record.state is RecordState.CONDEMNED or look.seen_twice(record.instance_id, session)
    return Terminate if known and state is InstanceState.RUNNING else None


def _repair_of_stopped(look: Look, record: Record, state: InstanceState) -> type | None:
    """One that runs though it is to be off; one that is off as it is to be, with its node or where none is wanted; one that has ended."""
    node, wanted = look.node(record.controller, record.node), look.fleet.pools[record.pool].warm_pool
    if state in _ENDED:
        return Forget if node is None else None
    if record.state is RecordState.STOPPING and state is InstanceState.STOPPED:
        unused = node is None or (node.idle and not node.builds and node.name not in look.bound(record.controller))
        return FinishStop if unused or record.changed_at <= NOW - 300.0 else None
    if record.state is RecordState.STOPPED and state in _ON:
        return Start if look.seen_twice(record.instance_id) else None
    return Terminate if record.state is RecordState.STOPPED and wanted is None and not look.on_hold(record.pool) else None


def _surely_ended(look: Look, record: Record) -> bool:
    """It was condemned; or two looks have shown that it ended, and nothing in Jenkins seems to need it, or both for minutes."""
    if record.state is RecordState.CONDEMNED:
        return True
    looked, node = look.seen(record.instance_id), look.node(record.controller, record.node)
    unused = node.idle and not node.builds and node.name not in look.bound(record.controller)
    return look.seen_twice(record.instance_id) and looked.condition == "ended" and (unused or NOW - looked.first_at >= 300.0)


def _nodes_without_records(look: Look) -> dict[str, tuple[str, str]]:
    """Controller and name of the nodes of ours that no record knows and nothing runs on, by the instance that they are named after."""
    recorded = {(record.controller, record.node) for record in look.snapshot.records}
    nodes = [(view.name, node) for view in look.views for node in view.nodes if not look.fleet.is_beacon(node.name)]
    return {
        f"i-{node.name.split('-')[1]}": (controller, node.name)
        for controller, node in nodes
        if (controller, node.name) not in recorded and node.idle and not node.builds
    }
