"""Writes records. Each write is conditional on the revision that was read, so that nothing that another function noted is lost.

A step whose write lost the race stops, and the next pass decides anew. What a step has already done is noted all the same: the record is
read again, and what is to be noted is decided from it.
"""

from collections.abc import Callable, MutableMapping
from dataclasses import dataclass

from autoscaler.domain.facts.snapshot import Record
from autoscaler.errors import ConflictError, TransientError
from autoscaler.ports import StateStore

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
