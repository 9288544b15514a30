"""The context in which the steps of one pass are carried out, and their effects so far."""

from collections.abc import Mapping
from dataclasses import replace

from autoscaler.control import nodes
from autoscaler.control.outcomes import Outcome, Result
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.plan import Effect, Launch, Step, Tried
from autoscaler.domain.facts.snapshot import Record, RecordState, Snapshot
from autoscaler.ports import Controller, Ports


class Acting:
    """The world of one pass, as its steps change it. ``holder``: of the lease; "" without it.

    Each write of a record is conditional on the revision that was read, so that nothing that
    another function noted is lost. A step whose write lost the race stops, and the next pass
    decides anew. What a step has already done is noted all the same: the record is read again, and
    what is to be noted is decided from it.
    """

    def __init__(self, ports: Ports, fleet: Fleet, snapshot: Snapshot, holder: str) -> None:
        """Begin with what the pass has seen."""
        self.ports = ports
        self.fleet = fleet
        self.snapshot = snapshot
        self.holder = holder
        self.controllers: Mapping[str, Controller] = {one.name: one for one in ports.controllers}
        # Each as it was last read or written here.
        self.records = {record.instance_id: record for record in snapshot.records}
        self.effects: list[Effect] = []
        self.instead: list[Launch] = []  # of what could not be started
        self.unresponsive: set[str] = set()  # controllers
        self.is_remembered = False  # what this pass has to remember is saved

    def record_of(self, step: Step) -> Record | None:
        """Return the record of the agent that has the node of a step."""
        place = step.controller, step.node
        found = (read for read in self.records.values() if (read.controller, read.node) == place)
        return next(found, None)

    def write(self, record: Record, holder: str = "") -> Record:
        """Replace a record if nobody has changed it since it was read, or stop here.

        With ``holder``: only while the lease is still theirs.
        """
        written = self.ports.state.change_record(
            record, expected=self.records[record.instance_id].state, holder=holder
        )
        self.records[record.instance_id] = written
        return written

    def write_as(self, record: Record, state: RecordState) -> Record:
        """Replace a record by one that has come into another state now, likewise."""
        return self.write(replace(record, state=state, changed_at=self.ports.clock()))

    def tried(self, key: str, why: str | None) -> None:
        """Note that a step was tried, by its name in what keeps failing, and why it failed."""
        self.effects.append(Tried(key=key, why=why))

    def note(self, instance_id: str, change: nodes.Change) -> Record | None:
        """Write what a step has already done, on whatever the record is by now.

        Return the record; None if there is none any more.
        """
        record = self.records.get(instance_id)
        if record is not None:
            record = nodes.note(self.ports.state, record, change)
        if record is None:
            self.records.pop(instance_id, None)
        else:
            self.records[instance_id] = record
        return record


def done(step: Step, detail: str = "") -> Result:
    """The step was carried out."""
    return Result(step=step, outcome=Outcome.DONE, detail=detail)


def skipped(step: Step, why: str) -> Result:
    """The world had changed, so that acting would have been wrong."""
    return Result(step=step, outcome=Outcome.SKIPPED, detail=why)


def failed(step: Step, why: str) -> Result:
    """It did not work; the next pass will try again."""
    return Result(step=step, outcome=Outcome.FAILED, detail=why)
