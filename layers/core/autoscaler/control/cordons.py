"""Cordons nodes and brings them back, by the offline mark, or first by the labels where the mark may cost a build; lends them by labels.

The record is written first. Whatever fails or is cut off after it, the labels that it wants are set by a later pass.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from autoscaler.control import nodes
from autoscaler.control.records import Records
from autoscaler.control.report import Outcome, Result
from autoscaler.domain.facts.fleet import CORDONED_LABEL, Fleet
from autoscaler.domain.facts.nodes import (
    Room,
    are_as_wanted,
    drops_handed_builds,
    is_held_as_wanted,
    labels_of_ours,
    labels_wanted,
    room_on,
)
from autoscaler.domain.facts.plan import Cordon, Lend, Relabel, TakeBack, Uncordon
from autoscaler.domain.facts.snapshot import ControllerView, Node, Record
from autoscaler.domain.report.told import at_work
from autoscaler.errors import ConfigError, ConflictError
from autoscaler.ports import Controller


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
            return nodes.cordon(self.controller, step)
        before = self.controller.node(step.node)
        if before is None or before.temporarily_offline:
            return nodes.cordon(self.controller, step)  # which says what is in the way, or changes the class of a mark of ours
        taken = self.records.write(self._fitted(replace(record, cordon=step.mark.text), before))
        try:
            self.set_labels(taken, before)
        except ConfigError as error:
            self.give_back(taken, record.cordon)
            self.log("cordoned_without_labels", controller=self.controller.name, node=step.node, error=str(error))
            return nodes.cordon(self.controller, step)
        return Result(step=step, outcome=Outcome.DONE, detail="its labels were taken")

    def uncordon(self, step: Uncordon, record: Record | None) -> Result:
        """Undo our mark, and give back the labels that were taken for it."""
        before = self.controller.node(step.node) if record is not None and record.labels else None
        if record is None or before is None or self._keeps_labels(record, before):
            return nodes.uncordon(self.controller, step)
        if before.temporarily_offline:
            result = nodes.uncordon(self.controller, step)
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
