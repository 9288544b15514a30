"""Cordons nodes and brings them back, lends them, reserves them for people.

By the offline mark, or first by the labels where the mark may cost a build; a loan by the labels.

The record is written first. Whatever fails or is cut off after it, the labels that it wants are
set by a later pass.
"""

from dataclasses import replace

from autoscaler.control import nodes
from autoscaler.control.outcomes import Outcome, Result
from autoscaler.control.steps.acting import Acting, done, failed, skipped
from autoscaler.domain.facts.fleet import CORDONED_LABEL
from autoscaler.domain.facts.nodes import (
    Room,
    are_as_wanted,
    drops_handed_builds,
    is_held_as_wanted,
    labels_of_ours,
    labels_wanted,
    room_on,
)
from autoscaler.domain.facts.plan import (
    Cordon,
    EndReservation,
    Lend,
    Relabel,
    Reserve,
    ReserveDevice,
    Step,
    TakeBack,
    Uncordon,
)
from autoscaler.domain.facts.snapshot import Node, Record, RecordState
from autoscaler.domain.report.told import at_work
from autoscaler.errors import ConfigError, ConflictError


def cordon(acting: Acting, step: Cordon) -> Result:
    """Mark a node offline.

    On a Jenkins that may drop a build then, take its labels first, and mark it in a later pass.
    """
    controller, record = acting.controllers[step.controller], acting.record_of(step)
    may_drop = drops_handed_builds(acting.snapshot.controllers[step.controller])
    if may_drop and record is not None and record.labels and record.cordon != step.mark.text:
        before = controller.node(step.node)
        # On one that is marked: what follows says what is in the way, or changes a mark of ours.
        if before is not None and not before.temporarily_offline:
            unlabelled = acting.write(
                _fitted(acting, replace(record, cordon=step.mark.text), before)
            )
            if _labels_taken(
                acting, step, unlabelled, before, "cordoned_without_labels", record.cordon
            ):
                return done(step, "its labels were taken")
    return nodes.cordon(controller, step)


def uncordon(acting: Acting, step: Uncordon) -> Result:
    """Undo our mark, and give back the labels that were taken for it."""
    controller, record = acting.controllers[step.controller], acting.record_of(step)
    before = controller.node(step.node) if record is not None and record.labels else None
    if record is None or before is None:
        return nodes.uncordon(controller, step)
    # It may have its labels, and none that people have held since it was marked.
    has_them = not (record.cordon or CORDONED_LABEL in before.labels)
    if has_them and is_held_as_wanted(record, before, acting.fleet, acting.ports.clock()):
        return nodes.uncordon(controller, step)
    if before.temporarily_offline:
        result = nodes.uncordon(controller, step)
        if result.outcome is not Outcome.DONE:
            return result
    given = _fitted(acting, replace(record, cordon=""), before)
    _set_labels(acting, step, acting.write(given), before)
    return done(step, "its labels are back")


def relabel(acting: Acting, step: Relabel) -> Result:
    """Set the labels that the record and the builds want which are there now."""
    before, record = acting.controllers[step.controller].node(step.node), acting.record_of(step)
    if record is None or before is None or before.temporarily_offline:
        return skipped(step, "the node is not there any more, or somebody marked it offline")
    fitted = _fitted(acting, record, before, step.weight)
    if fitted != record:
        fitted = acting.write(fitted)
    room = _set_labels(acting, step, fitted, before, step.weight)
    has_all = room is not None and room.executors == acting.fleet.pools[record.pool].executors
    if has_all and fitted.by_weight:
        acting.write(replace(fitted, by_weight=False))
    return done(step)


def lend(acting: Acting, step: Lend) -> Result:
    """Note until when an agent is lent, and give its node the labels of the general kind.

    Only if it is still idle and online.
    """
    before, record = acting.controllers[step.controller].node(step.node), acting.record_of(step)
    is_busy = before is None or before.offline or not before.idle or before.builds
    if record is None or before is None or is_busy or record.cordon:
        return skipped(step, "its node is not there any more, not online, or busy")
    pool, now = acting.fleet.pools.get(record.pool), acting.ports.clock()
    if pool is None or not pool.lent_labels or not are_as_wanted(record, before, acting.fleet, now):
        return skipped(step, "its pool lends nothing any more, or its labels must be set first")
    labels = tuple(sorted(pool.lent_labels))
    lent = replace(record, lent_until=step.until_at, lent_labels=labels, borrowers=())
    _set_labels(acting, step, acting.write(lent), before)
    return done(step)


def take_back(acting: Acting, step: TakeBack) -> Result:
    """Note that a loan is over, and take the labels of the general kind from the node.

    Its builds go on.
    """
    before, record = acting.controllers[step.controller].node(step.node), acting.record_of(step)
    if record is None or before is None or before.is_deleted:
        return skipped(step, "the node is not there any more")
    borrowers = tuple(build.key for build in before.builds)
    until_at = min(record.lent_until, acting.ports.clock())
    ended = replace(record, lent_until=until_at, borrowers=borrowers)
    own = acting.write(_fitted(acting, ended, before))
    if before.temporarily_offline:
        return done(step, "it is marked offline; its labels change once it is back")
    _set_labels(acting, step, own, before)
    return done(step, at_work(before))


def _labels_taken(
    acting: Acting, step: Step, taken: Record, before: Node, event: str, cordon: str = ""
) -> bool:
    """Take the labels of a node; where that is not allowed, note it and log ``event``.

    Then the mark alone keeps builds away. ``cordon``: what its record said before.
    """
    try:
        _set_labels(acting, step, taken, before)
    except ConfigError as error:
        acting.note(
            taken.instance_id,
            lambda read: replace(read, cordon=cordon) if read.cordon == taken.cordon else None,
        )
        acting.ports.log(event, controller=step.controller, node=before.name, error=str(error))
        return False
    return True


def _set_labels(
    acting: Acting, step: Step, record: Record, before: Node, weight: int = 1
) -> Room | None:
    """Set the labels that a record wants, and read the node again.

    Somebody else may have configured it in the same instant.
    """
    controller, fleet, clock = acting.controllers[step.controller], acting.fleet, acting.ports.clock
    room = room_on(record, before, fleet, weight)
    is_full = room is not None and room.is_full
    labels, exclusive = labels_wanted(record, fleet, clock(), is_full=is_full)
    controller.set_labels(
        before.name,
        labels,
        instead_of=labels_of_ours(record, fleet),
        exclusive=exclusive,
        executors=room.executors if room else None,
    )
    after = controller.node(before.name)
    if after is None:
        return room
    if not (labels <= after.labels and are_as_wanted(record, after, fleet, clock(), room)):
        raise ConflictError(
            f"the labels of {before.name} are not those that were set: "
            "somebody configured it at the same moment"
        )
    return room


def _fitted(acting: Acting, record: Record, before: Node, weight: int = 1) -> Record:
    """Note that a node is to show fewer executors than its pool has.

    Without weights it gets them back by this note alone.
    """
    room = room_on(record, before, acting.fleet, weight)
    is_fewer = room and room.executors != acting.fleet.pools[record.pool].executors
    return replace(record, by_weight=True) if is_fewer else record


# Reserves agents and their devices. The record says so first, then builds are kept away.


def reserve(acting: Acting, step: Reserve) -> Result:
    """Note for whom an agent is, take its labels, so that no job waits for it by one, and mark it.

    On a Jenkins that may drop a build in the instant of the mark, a later pass sets it.
    """
    controller = acting.controllers[step.controller]
    before = controller.node(step.node)
    if step.instance_id not in acting.records or before is None:
        return skipped(step, "the node is not there any more")
    if why := _why_not(step, before):
        return skipped(step, why)

    def for_a_person(record: Record) -> Record | None:
        is_it = record.state is RecordState.REGISTERED and record.node == step.node
        if not is_it or record.reservation:
            return None
        by_labels = bool(record.labels) and not before.temporarily_offline
        cordon = step.mark.text if by_labels else record.cordon
        return replace(record, reservation=step.reservation, cordon=cordon)

    reserved = acting.note(step.instance_id, for_a_person)
    if reserved is None or reserved.reservation != step.reservation:
        return skipped(
            step, "the agent was given up, or reserved for somebody else, at the same moment"
        )
    by_labels = reserved.cordon == step.mark.text
    taken = by_labels and _labels_taken(acting, step, reserved, before, "reserved_with_labels")
    if taken and drops_handed_builds(acting.snapshot.controllers[step.controller]):
        return done(step, at_work(before))
    marking = Cordon(
        controller=step.controller,
        pool=step.pool,
        node=step.node,
        mark=step.mark,
        replaces=step.replaces,
        reason=step.reason,
        detail=step.detail,
    )
    marked = nodes.cordon(controller, marking)
    if marked.outcome is not Outcome.DONE:
        return failed(step, marked.detail)
    after = controller.node(step.node)
    return done(step, at_work(after) if after else "")


def _why_not(step: Reserve, node: Node) -> str | None:
    """Say why an agent is not reserved after all: somebody was quicker."""
    is_ours = step.replaces and nodes.carries(node, step.replaces)
    is_used = not step.though_busy and (node.offline or not node.idle or node.builds)
    used = "a build has begun there, or it is not connected any more; ask again for another one"
    return nodes.first_of(
        (
            node.temporarily_offline and not is_ours,
            f"somebody marked it offline first: {node.reason!r}",
        ),
        (is_used, used),
    )


def reserve_device(acting: Acting, step: ReserveDevice) -> Result:
    """Note that a person has a device of a machine.

    Its agent hears of it when it asks next, and holds one for them.
    """

    def for_a_person(record: Record) -> Record | None:
        if record.state is not RecordState.REGISTERED:
            return None
        now = acting.ports.clock()
        kept = (reservation for reservation in record.devices_for if not reservation.is_over(now))
        return replace(record, devices_for=(*kept, step.reservation))

    record = acting.note(step.instance_id, for_a_person)
    if record is None or step.reservation not in record.devices_for:
        return skipped(step, "the machine is about to go")
    return done(step)


def end_reservation(acting: Acting, step: EndReservation) -> Result:
    """Note when a reservation ends."""
    record = acting.note(step.instance_id, lambda record: _ended(record, step))
    if record is None or not (step.person or record.reservation):
        return skipped(step, "it is not reserved any more")
    return done(step)


def _ended(record: Record, step: EndReservation) -> Record | None:
    if step.person:
        devices_for = (
            replace(reservation, until_at=step.until_at)
            if reservation.person == step.person
            else reservation
            for reservation in record.devices_for
        )
        return replace(record, devices_for=tuple(devices_for))
    if record.reservation is None:
        return None
    return replace(record, reservation=replace(record.reservation, until_at=step.until_at))
