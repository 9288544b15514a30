"""Gives agents to other controllers. The record is written first: cut off anywhere, the next pass deletes the node that was left.

Until that node is deleted the agent is told to ask again, so that whatever may have begun there meanwhile goes on. If the node is in use
again before it is deleted, the agent goes back to it, and the next look decides anew.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from autoscaler.control import nodes
from autoscaler.control.records import Records
from autoscaler.control.report import Outcome, Result
from autoscaler.domain.facts.fleet import Fleet, agent_spec, node_name
from autoscaler.domain.facts.metering import given_back, rotated
from autoscaler.domain.facts.plan import FinishRotation, Rotate
from autoscaler.domain.facts.snapshot import Record, RecordState
from autoscaler.ports import Controller


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """Takes these steps, while the lease is still ``holder``'s."""

    controllers: Mapping[str, Controller]
    fleet: Fleet
    records: Records
    clock: Callable[[], float]
    holder: str

    def act(self, step: Rotate | FinishRotation, record: Record) -> Result:
        """Read the node once more, note whom the agent serves from now on, then delete the node that it leaves."""
        if isinstance(step, Rotate):
            if keep := nodes.may_terminate(self.controllers[step.controller], step.node, step.mark):
                return Result(step=step, outcome=Outcome.SKIPPED, detail=keep)
            self.records.write(rotated(record, step.to, self.clock()), self.holder)
        return self._leave(step)

    def _leave(self, step: Rotate | FinishRotation) -> Result:
        if step.controller not in self.controllers:
            return self._close_unseen(step)
        controller = self.controllers[step.controller]
        node = controller.node(step.node)
        is_bound = isinstance(step, FinishRotation) and step.is_bound
        if node is not None and (is_bound or not (node.offline and node.idle and not node.builds)):
            return self._stay(step)
        record = self.records.now[step.instance_id]
        if step.node == node_name(record.pool, record.machine):  # a static node is its operator's
            controller.delete_node(step.node)
        self.records.note(step.instance_id, lambda read: _without(read, step))
        return Result(step=step, outcome=Outcome.DONE)

    def _stay(self, step: Rotate | FinishRotation) -> Result:
        """Give an agent back to the node that it was to leave, since that is in use again.

        Somebody brought it online, as a reload of Jenkins' configuration does with every node, or a build is on it or bound to it. If it
        were only left alone, it might stay online and idle: then the agent could register nowhere, and nobody would end its instance.
        """
        pool = self.fleet.pool_of(step.pool, step.controller)
        if pool is None:
            return Result(step=step, outcome=Outcome.SKIPPED, detail=f"its node is in use, and nobody knows its pool {step.pool}")
        spec = agent_spec(self.fleet, pool, self.records.now[step.instance_id].machine, step.controller)
        labels, now = spec.labels if step.node == spec.name else (), self.clock()  # as it is adopted

        def stays(read: Record) -> Record | None:
            left = next((one for one in read.leaves if (one.controller, one.node) == (step.controller, step.node)), None)
            # Not what was given up meanwhile, nor what has a node elsewhere.
            begins = read.state is RecordState.STARTING and read.node is None
            return given_back(read, left, labels, now) if left is not None and begins else None

        record = self.records.note(step.instance_id, stays)
        so = f": it stays on {step.controller}" if record is not None and record.node == step.node else ""
        detail = f"somebody brought its node online, or a build is on it or bound to it{so}"
        return Result(step=step, outcome=Outcome.SKIPPED, detail=detail)

    def _close_unseen(self, step: Rotate | FinishRotation) -> Result:
        """Note that nothing runs on a controller that left the fleet file, as a person said. Its node stays there: nobody can delete it."""
        record = self.records.now[step.instance_id]
        if (record.controller, record.node) != (step.controller, step.node):
            self.records.note(step.instance_id, lambda read: _without(read, step))
        elif record.is_instance:
            return Result(step=step, outcome=Outcome.SKIPPED, detail="it is an instance, which is ended as a whole")
        else:
            self.records.write(replace(record, state=RecordState.GONE, changed_at=self.clock()))
        return Result(step=step, outcome=Outcome.DONE)


def _without(record: Record, step: Rotate | FinishRotation) -> Record:
    """Note that the node is deleted that an agent leaves."""
    others = tuple(binding for binding in record.leaves if (binding.controller, binding.node) != (step.controller, step.node))
    return replace(record, leaves=others)
