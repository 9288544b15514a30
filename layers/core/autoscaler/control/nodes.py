"""Acts on one node and its record: reads it just before, acts only if it is as decided, reads it again after.

Marks overwrite each other without trace in Jenkins, and its toggle turns both ways; these reads are what keeps a person's
mark a person's, and a build alive.
"""

from collections.abc import Callable, Collection, Mapping, MutableMapping
from dataclasses import dataclass, replace

from autoscaler.control.outcomes import Outcome, Result
from autoscaler.domain.facts.fleet import CORDONED_LABEL, HOST, Fleet
from autoscaler.domain.facts.nodes import (
    Mark,
    Room,
    are_as_wanted,
    drops_handed_builds,
    has_static_node,
    is_held_as_wanted,
    labels_of_ours,
    labels_wanted,
    read_mark,
    room_on,
)
from autoscaler.domain.facts.plan import (
    CancelItem,
    Cordon,
    CreateBeacon,
    DeleteNode,
    FreeSlot,
    Lend,
    Relabel,
    RemoveBeacon,
    TakeBack,
    Uncordon,
)
from autoscaler.domain.facts.runs import RunAnswer
from autoscaler.domain.facts.snapshot import SIDE, ControllerView, InstanceState, Node, OfflineCause, Record, RecordState
from autoscaler.domain.report.told import at_work
from autoscaler.errors import ConfigError, ConflictError, DoubtfulError, TransientError
from autoscaler.ports import Compute, Controller, Ports, StateStore, StoredState


def act(controller: Controller, step: CreateBeacon | RemoveBeacon | CancelItem) -> Result:
    """Take a step that concerns Jenkins alone."""
    match step:
        case CreateBeacon():
            return create_beacon(controller, step)
        case RemoveBeacon():
            return remove_beacon(controller, step)
        case CancelItem():
            return cancel(controller, step)


def cancel(controller: Controller, step: CancelItem) -> Result:
    """Take an item out of the queue, if it is still there."""
    if controller.cancel_item(step.item):
        return Result(step=step, outcome=Outcome.DONE)
    return Result(step=step, outcome=Outcome.SKIPPED, detail="it left the queue by itself")


def cordon(controller: Controller, step: Cordon) -> Result:
    """Mark a node offline in the class decided; never over a mark that a person set, or a monitor has taken back."""
    before = controller.node(step.node)
    if before is None:
        return Result(step=step, outcome=Outcome.SKIPPED, detail="the node is not there any more")
    if step.over_monitor and not before.temporarily_offline:
        return Result(step=step, outcome=Outcome.SKIPPED, detail="the monitor has taken its mark back: it is used again")
    if before.temporarily_offline and not _may_be_replaced(before, step):
        return Result(step=step, outcome=Outcome.SKIPPED, detail=f"somebody marked it offline first: {before.reason!r}")
    doubt = _doubt_about(lambda: controller.set_offline(step.node, step.mark.text))
    after = controller.node(step.node)
    if after is None or not carries(after, step.mark):
        if doubt:
            raise doubt
        return Result(step=step, outcome=Outcome.FAILED, detail="the mark is not there after it was set")
    return Result(step=step, outcome=Outcome.DONE, detail=at_work(after))


def _doubt_about(change: Callable[[], None]) -> DoubtfulError | None:
    """Change a node; return the error if something that is not Jenkins answered, so that only a look tells whether it was changed."""
    try:
        change()
    except DoubtfulError as error:
        return error
    return None


def _may_be_replaced(node: Node, step: Cordon) -> bool:
    """Tell whether the mark on a node is the one that was decided to be replaced."""
    if step.replaces:
        return carries(node, step.replaces)
    return step.over_monitor and node.cause is not OfflineCause.PERSON


def uncordon(controller: Controller, step: Uncordon) -> Result:
    """Bring a node back online, if it is offline by exactly the mark that was seen."""
    before = controller.node(step.node)
    if before is None or not carries(before, step.mark):
        return Result(step=step, outcome=Outcome.SKIPPED, detail="it does not carry that mark any more")
    # With the mark that it carries: should somebody bring it online in between, the toggle marks it offline, and this mark says
    # that it was us. It is then as it was decided from, wherever the rest of this is cut off.
    doubt = _doubt_about(lambda: controller.toggle_offline(step.node, step.mark.text))
    after = controller.node(step.node)
    if after is not None and carries(after, step.mark):
        if doubt:
            raise doubt  # the toggle may come late: a second one would turn it round
        controller.toggle_offline(step.node, step.mark.text)
        last = controller.node(step.node)
        if last is not None and carries(last, step.mark):
            # Twice our own toggle cannot have met somebody else's: it did nothing, whatever was answered.
            return Result(step=step, outcome=Outcome.FAILED, detail="it still carries our mark after it was brought online")
        return Result(step=step, outcome=Outcome.DONE, detail="somebody else brought it online at the same moment")
    return Result(step=step, outcome=Outcome.DONE)


def may_terminate(controller: Controller, node_name: str, mark: Mark | None, ended: Collection[str] = ()) -> str | None:
    """Say why the agent behind this node must be kept; None when it may go: still marked by us, offline, idle.

    ``ended``: keys of builds that have ended though their executors show them; their runs are asked once more.
    """
    node = controller.node(node_name)
    if node is None:
        return None
    if not node.offline:
        return "its node is online"
    if mark is not None and not carries(node, mark):
        return f"its node does not carry our mark any more: {node.reason!r}"
    if mark is None and node.temporarily_offline:
        return f"somebody marked its node offline: {node.reason!r}"
    return _why_at_work(controller, node, ended)


def _why_at_work(controller: Controller, node: Node, ended: Collection[str]) -> str | None:
    if any(build.key not in ended for build in node.builds) or not (node.idle or node.builds):
        return "a build slipped in"
    runs = (run for run in {build.run for build in node.builds} if controller.whether_ended(run) not in _HAS_ENDED)
    return next((f"Jenkins does not say any more that {run} has ended" for run in runs), None)


_HAS_ENDED = (RunAnswer.ENDED, RunAnswer.MAY_HAVE_ENDED)


def confirms(answer: InstanceState, said: InstanceState | None) -> bool:
    """Tell whether EC2, asked again, says the same of an instance. What has terminated may be left out of an answer."""
    return answer is said or (said is InstanceState.TERMINATED and answer is InstanceState.NOT_FOUND)


def may_delete(controller: Controller, step: DeleteNode) -> str | None:
    """Say why a node must be kept though its instance is gone; None when it may go.

    What EC2 says has terminated takes its builds with it: Jenkins ends them once their node is deleted. What EC2 merely does not
    know any more may still run them, for as long as that is to be believed.
    """
    node = controller.node(step.node)
    if node is None:
        return None
    if not node.offline:
        return "its node is connected"
    if node.is_deleted and (not (node.idle or node.builds) or any(build.key not in step.ended for build in node.builds)):
        return "Jenkins has deleted it, and lists it until it has ended what is on it"
    may_run = step.fate is not InstanceState.TERMINATED and not step.though_busy
    if may_run and (not node.idle or node.builds):
        return "a build is on it"
    return None


def free(controller: Controller, step: FreeSlot) -> Result:
    """Bring a slot back online if it still carries our mark; other marks stay."""
    node = controller.node(step.node)
    if node is not None and step.mark is not None and carries(node, step.mark):
        if not node.idle:
            return Result(step=step, outcome=Outcome.SKIPPED, detail="a build is on it")
        controller.toggle_offline(step.node, step.mark.text)
    return Result(step=step, outcome=Outcome.DONE)


def create_beacon(controller: Controller, step: CreateBeacon) -> Result:
    """Create the beacon, unless it is there already."""
    try:
        controller.create_node(step.spec)
    except ConflictError:
        return Result(step=step, outcome=Outcome.DONE, detail="it is there already")
    return Result(step=step, outcome=Outcome.DONE)


def remove_beacon(controller: Controller, step: RemoveBeacon) -> Result:
    """Delete a beacon, unless somebody connected an agent to it."""
    node = controller.node(step.node)
    if node is None:
        return Result(step=step, outcome=Outcome.SKIPPED, detail="it is not there any more")
    if not node.offline or not node.idle or node.builds:
        return Result(step=step, outcome=Outcome.SKIPPED, detail="somebody uses it")
    controller.delete_node(step.node)
    return Result(step=step, outcome=Outcome.DONE)


def carries(node: Node, mark: Mark) -> bool:
    """Tell whether a node is offline by exactly this mark of ours."""
    return node.offline and node.cause is OfflineCause.PERSON and read_mark(node.reason, mark.fleet) == mark


# Writes records. Each write is conditional on the revision that was read, so that nothing that another function noted is lost.
#
# A step whose write lost the race stops, and the next pass decides anew. What a step has already done is noted all the same: the record is
# read again, and what is to be noted is decided from it.


# Each function that may write the same record meanwhile does so a few times at most.
_TRIES = 4
Change = Callable[[Record], Record | None]  # None: nothing is to be written


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """The records of one pass. ``now``: by instance id, each as it was last read or written here."""

    state: StateStore
    now: MutableMapping[str, Record]

    def write(self, record: Record, holder: str = "") -> Record:
        """Replace a record if nobody has changed it since it was read; with ``holder``, only while the lease is still theirs."""
        before = self.now[record.instance_id]
        self.now[record.instance_id] = written = self.state.change_record(record, expected=before.state, holder=holder)
        return written

    def note(self, instance_id: str, change: Change) -> Record | None:
        """Write what a step has already done, on whatever the record is by now; return the record, None if there is none any more."""
        record = self.now.get(instance_id)
        if record is not None:
            record = note(self.state, record, change)
        if record is None:
            self.now.pop(instance_id, None)
        else:
            self.now[instance_id] = record
        return record


def note(state: StateStore, record: Record, change: Change) -> Record | None:
    """Change a record; if somebody was quicker, read it again and decide anew. Return it as it is then; None: it is not there any more."""
    for _ in range(_TRIES):
        changed = change(record)
        if changed is None:
            return record
        try:
            return state.change_record(changed, expected=record.state)
        except ConflictError:
            read = state.record(record.instance_id)
        if read is None:
            return None
        record = read
    raise TransientError(f"the record of {record.instance_id} changes all the time")


# Cordons nodes and brings them back, by the offline mark, or first by the labels where the mark may cost a build; lends them by labels.
#
# The record is written first. Whatever fails or is cut off after it, the labels that it wants are set by a later pass.


@dataclass(frozen=True, slots=True, kw_only=True)
class Cordons:
    """Cordons nodes of one controller."""

    controller: Controller
    view: ControllerView
    fleet: Fleet
    records: Records
    clock: Callable[[], float]
    log: Callable[..., None]

    def act(self, step: Cordon | Uncordon | Relabel | Lend | TakeBack, record: Record | None) -> Result:
        """Take one of these steps."""
        match step:
            case Cordon():
                return self.cordon(step, record)
            case Uncordon():
                return self.uncordon(step, record)
            case Relabel():
                return self.relabel(step, record)
            case Lend():
                return self.lend(step, record)
            case TakeBack():
                return self.take_back(step, record)

    def cordon(self, step: Cordon, record: Record | None) -> Result:
        """Mark a node offline. On a Jenkins that may drop a build then, take its labels first, and mark it in a later pass."""
        labels_first = drops_handed_builds(self.view) and record is not None and record.labels
        if record is None or not labels_first or record.cordon == step.mark.text:
            return cordon(self.controller, step)
        before = self.controller.node(step.node)
        if before is None or before.temporarily_offline:
            return cordon(self.controller, step)  # which says what is in the way, or changes the class of a mark of ours
        taken = self.records.write(self._fitted(replace(record, cordon=step.mark.text), before))
        try:
            self.set_labels(taken, before)
        except ConfigError as error:
            self.give_back(taken, record.cordon)
            self.log("cordoned_without_labels", controller=self.controller.name, node=step.node, error=str(error))
            return cordon(self.controller, step)
        return Result(step=step, outcome=Outcome.DONE, detail="its labels were taken")

    def uncordon(self, step: Uncordon, record: Record | None) -> Result:
        """Undo our mark, and give back the labels that were taken for it."""
        before = self.controller.node(step.node) if record is not None and record.labels else None
        if record is None or before is None or self._keeps_labels(record, before):
            return uncordon(self.controller, step)
        if before.temporarily_offline:
            result = uncordon(self.controller, step)
            if result.outcome is not Outcome.DONE:
                return result
        given = self.records.write(self._fitted(replace(record, cordon=""), before))
        self.set_labels(given, before)
        return Result(step=step, outcome=Outcome.DONE, detail="its labels are back")

    def _keeps_labels(self, record: Record, node: Node) -> bool:
        """Tell whether a node has its labels yet, and none that people have held since it was marked."""
        has_them = not (record.cordon or CORDONED_LABEL in node.labels)
        return has_them and is_held_as_wanted(record, node, self.fleet, self.clock())

    def relabel(self, step: Relabel, record: Record | None) -> Result:
        """Set the labels that the record and the builds want which are there now."""
        before = self.controller.node(step.node)
        if record is None or before is None or before.temporarily_offline:
            return Result(step=step, outcome=Outcome.SKIPPED, detail="the node is not there any more, or somebody marked it offline")
        fitted = self._fitted(record, before, step.weight)
        if fitted != record:
            fitted = self.records.write(fitted)
        room = self.set_labels(fitted, before, step.weight)
        if room and fitted.by_weight and not self._is_fewer(record, room):
            self.records.write(replace(fitted, by_weight=False))
        return Result(step=step, outcome=Outcome.DONE)

    def lend(self, step: Lend, record: Record | None) -> Result:
        """Note until when an agent is lent, and give its node the labels of the general kind, if it is still idle and online."""
        before = self.controller.node(step.node)
        if record is None or before is None or before.offline or record.cordon or not before.idle or before.builds:
            return Result(step=step, outcome=Outcome.SKIPPED, detail="its node is not there any more, not online, or busy")
        pool = self.fleet.pools.get(record.pool)
        if pool is None or not pool.lent_labels or not are_as_wanted(record, before, self.fleet, self.clock()):
            return Result(step=step, outcome=Outcome.SKIPPED, detail="its pool lends nothing any more, or its labels must be set first")
        lent = replace(record, lent_until=step.until_at, lent_labels=tuple(sorted(pool.lent_labels)), borrowers=())
        lent = self.records.write(lent)
        self.set_labels(lent, before)
        return Result(step=step, outcome=Outcome.DONE)

    def take_back(self, step: TakeBack, record: Record | None) -> Result:
        """Note that a loan is over, and take the labels of the general kind from the node. Its builds go on."""
        before = self.controller.node(step.node)
        if record is None or before is None or before.is_deleted:
            return Result(step=step, outcome=Outcome.SKIPPED, detail="the node is not there any more")
        borrowers = tuple(build.key for build in before.builds)
        own = self._fitted(replace(record, lent_until=min(record.lent_until, self.clock()), borrowers=borrowers), before)
        own = self.records.write(own)
        if before.temporarily_offline:
            return Result(step=step, outcome=Outcome.DONE, detail="it is marked offline; its labels change once it is back")
        self.set_labels(own, before)
        return Result(step=step, outcome=Outcome.DONE, detail=at_work(before))

    def give_back(self, taken: Record, cordon: str) -> None:
        """Note that the labels of a node could not be taken after all: it is marked as before."""
        self.records.note(taken.instance_id, lambda record: replace(record, cordon=cordon) if record.cordon == taken.cordon else None)

    def set_labels(self, record: Record, before: Node, weight: int = 1) -> Room | None:
        """Set the labels that a record wants, and read the node again: somebody else may have configured it in the same instant."""
        room = room_on(record, before, self.fleet, weight)
        labels, exclusive = labels_wanted(record, self.fleet, self.clock(), is_full=room is not None and room.is_full)
        executors = room.executors if room else None
        ours = labels_of_ours(record, self.fleet)
        self.controller.set_labels(before.name, labels, instead_of=ours, exclusive=exclusive, executors=executors)
        after = self.controller.node(before.name)
        if after is not None and not (labels <= after.labels and are_as_wanted(record, after, self.fleet, self.clock(), room)):
            raise ConflictError(f"the labels of {before.name} are not those that were set: somebody configured it at the same moment")
        return room

    def _fitted(self, record: Record, before: Node, weight: int = 1) -> Record:
        """Note that a node is to show fewer executors than its pool has: without weights it gets them back by this note alone."""
        room = room_on(record, before, self.fleet, weight)
        return replace(record, by_weight=True) if room and self._is_fewer(record, room) else record

    def _is_fewer(self, record: Record, room: Room) -> bool:
        return room.executors != self.fleet.pools[record.pool].executors


# Deletes or frees the nodes of machines that are gone. EC2 and Jenkins are asked once more before anything is done.
#
# A node is deleted once. Jenkins goes on listing it while a pipeline is on it, and ends that pipeline five minutes later. A second deletion
# would take the pipeline's executor away: then nobody ends it.


_GIVEN_UP = (RecordState.CONDEMNED, RecordState.GONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoneMachines:
    """Takes these steps."""

    controllers: Mapping[str, Controller]
    compute: Compute
    records: Records
    clock: Callable[[], float]

    def act(self, step: DeleteNode | FreeSlot) -> Result:
        """Take one of these steps."""
        return self._delete(step) if isinstance(step, DeleteNode) else self._free(step)

    def delete_node(self, controller: str, node: str, instance_id: str) -> None:
        """Delete a node, and note on its record that Jenkins has answered."""
        self.controllers[controller].delete_node(node)
        now = self.clock()
        self.records.note(instance_id, lambda record: record.without_node(now) if _has(record, controller, node) else None)

    def _delete(self, step: DeleteNode) -> Result:
        """Delete a node once EC2, asked again, says that its instance is gone, and Jenkins that nobody is connected."""
        record = self.records.now.get(step.instance_id)
        if record is not None and has_static_node(record):
            return Result(step=step, outcome=Outcome.SKIPPED, detail="its node is its operator's")
        fate = self._fate(step.instance_id)
        if not confirms(fate, step.fate):
            return Result(step=step, outcome=Outcome.SKIPPED, detail=f"its instance is {fate}")
        keep = may_delete(self.controllers[step.controller], step)
        if keep:
            return Result(step=step, outcome=Outcome.SKIPPED, detail=keep)
        self._condemn(step.instance_id)
        self.delete_node(step.controller, step.node, step.instance_id)
        return Result(step=step, outcome=Outcome.DONE)

    def _fate(self, instance_id: str) -> InstanceState:
        """Ask EC2 for the instance of a record. A host is there as long as it has a record."""
        machine, _, _ = instance_id.partition(SIDE)
        if not machine.startswith(HOST):
            return self.compute.fate(machine)
        known = any(record.machine == machine for record in self.records.now.values())
        return InstanceState.RUNNING if known else InstanceState.TERMINATED

    def _free(self, step: FreeSlot) -> Result:
        """Give a slot back once EC2, asked again by id, says that its instance has ended."""
        if step.instance_id is not None:
            fate = self.compute.fate(step.instance_id)
            if not confirms(fate, step.fate):
                return Result(step=step, outcome=Outcome.SKIPPED, detail=f"its instance is {fate}")
        self._condemn(step.instance_id or "")
        return free(self.controllers[step.controller], step)

    def _condemn(self, instance_id: str) -> None:
        record = self.records.now.get(instance_id)
        if record is not None and record.state not in _GIVEN_UP:
            self.records.write(replace(record, state=RecordState.CONDEMNED, changed_at=self.clock()))


def _has(record: Record, controller: str, node: str) -> bool:
    return (record.controller, record.node) == (controller, node) and not record.bindings[0].deleted_at


# Notes on the records that EC2 takes an instance back: no later pass can ask EC2 whether it said so.


_MAY_BE_USED = (RecordState.REQUESTED, RecordState.STARTING, RecordState.REGISTERED)


def note_interruption(ports: Ports, stored: StoredState, instance_id: str) -> StoredState:
    """Note an announcement on all records of a machine, without the lease; return the state as it is then."""
    noted = [_note_interrupted(ports, record) if record.machine == instance_id else record for record in stored.records]
    return replace(stored, records=tuple(noted))


def _note_interrupted(ports: Ports, record: Record) -> Record:
    """Note it on one record, also if somebody changes that at the same moment, as by registering."""
    now = ports.clock()

    def interrupted(read: Record) -> Record | None:
        is_news = read.state in _MAY_BE_USED and not read.is_interrupted(now)
        return replace(read, interrupted_at=now) if is_news else None

    noted = note(ports.state, record, interrupted)
    if noted is None:
        return replace(record, state=RecordState.GONE)
    if noted.interrupted_at == now:
        ports.log("interruption_noted", instance_id=record.instance_id, pool=record.pool, state=str(noted.state))
    return noted
