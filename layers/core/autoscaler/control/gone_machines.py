"""Deletes or frees the nodes of machines that are gone. EC2 and Jenkins are asked once more before anything is done.

A node is deleted once. Jenkins goes on listing it while a pipeline is on it, and ends that pipeline five minutes later. A second deletion
would take the pipeline's executor away: then nobody ends it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from autoscaler.control import nodes
from autoscaler.control.records import Records
from autoscaler.control.report import Outcome, Result
from autoscaler.domain.facts.fleet import HOST
from autoscaler.domain.facts.nodes import has_static_node
from autoscaler.domain.facts.plan import DeleteNode, FreeSlot
from autoscaler.domain.facts.snapshot import SIDE, InstanceState, Record, RecordState
from autoscaler.ports import Compute, Controller

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
        if not nodes.confirms(fate, step.fate):
            return Result(step=step, outcome=Outcome.SKIPPED, detail=f"its instance is {fate}")
        keep = nodes.may_delete(self.controllers[step.controller], step)
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
            if not nodes.confirms(fate, step.fate):
                return Result(step=step, outcome=Outcome.SKIPPED, detail=f"its instance is {fate}")
        self._condemn(step.instance_id or "")
        return nodes.free(self.controllers[step.controller], step)

    def _condemn(self, instance_id: str) -> None:
        record = self.records.now.get(instance_id)
        if record is not None and record.state not in _GIVEN_UP:
            self.records.write(replace(record, state=RecordState.CONDEMNED, changed_at=self.clock()))


def _has(record: Record, controller: str, node: str) -> bool:
    return (record.controller, record.node) == (controller, node) and not record.bindings[0].deleted_at
