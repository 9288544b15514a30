"""Notes each step of a pass when it is done, so that a pass that is cut off later leaves what it did in the log and in the history."""

from autoscaler.control.events import event_of, note
from autoscaler.control.report import Outcome, Result, step_json
from autoscaler.domain.facts.plan import Plan
from autoscaler.domain.report.told import Event
from autoscaler.ports import Ports

_EVENTS = (Outcome.DONE, Outcome.FAILED)


class StepNotes:
    """The notes of one pass. ``by``: the function or person that runs it."""

    def __init__(self, ports: Ports, plan: Plan, by: str) -> None:
        """Keep where they go."""
        self._ports = ports
        self._plan = plan
        self._by = by
        self._unsent: list[Event] = []
        self._has_failed = False

    def note(self, result: Result) -> None:
        """Log a step and its outcome; add it to the history if it was taken or failed."""
        self._ports.log("step", pass_id=self._plan.pass_id, **step_json(result))
        if result.outcome not in _EVENTS:
            return
        self._unsent.append(event_of(self._by, result, self._ports.clock()))
        # A table that does not answer costs the pass one wait, and not one for each step.
        if not self._has_failed:
            self._send()

    def finish(self) -> None:
        """Try once more to add what could not be added before."""
        if self._unsent:
            self._send()

    def _send(self) -> None:
        self._has_failed = not note(self._ports, self._unsent)
        if not self._has_failed:
            self._unsent = []
