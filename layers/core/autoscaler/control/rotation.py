"""Gives agents to other controllers. The record is written first: cut off anywhere, the next pass deletes the node that was left.

Until that node is deleted the agent is told to ask again, so that whatever may have begun there meanwhile goes on.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from autoscaler.control import nodes
from autoscaler.control.report import Outcome, Result
from autoscaler.domain.facts.metering import rotated
from autoscaler.domain.facts.plan import FinishRotation, Rotate
from autoscaler.domain.facts.snapshot import Record, RecordState
from autoscaler.ports import Controller


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """Takes these steps. ``write`` replaces a record, if nobody else has changed its state and the lease is still ``holder``'s."""

    controllers: Mapping[str, Controller]
    write: Callable[[Record, RecordState, str], None]
    clock: Callable[[], float]
    holder: str

    def act(self, step: Rotate | FinishRotation, record: Record) -> Result:
        """Read the node once more, note whom the agent serves from now on, then delete the node that it leaves."""
        if isinstance(step, Rotate):
            if keep := nodes.may_terminate(self.controllers[step.controller], step.node, step.mark):
                return Result(step=step, outcome=Outcome.SKIPPED, detail=keep)
            changed = rotated(record, step.to, self.clock())
            self.write(changed, record.state, self.holder)
            record = changed
        return self._leave(step, record)

    def _leave(self, step: Rotate | FinishRotation, record: Record) -> Result:
        controller = self.controllers[step.controller]
        node = controller.node(step.node)
        if node is not None and not (node.offline and node.idle and not node.builds):
            return Result(step=step, outcome=Outcome.SKIPPED, detail="somebody brought its node online, or a build is on it")
        controller.delete_node(step.node)
        left = tuple(one for one in record.leaves if (one.controller, one.node) != (step.controller, step.node))
        self.write(replace(record, leaves=left), record.state, "")
        return Result(step=step, outcome=Outcome.DONE)
