"""Notes on the records that EC2 takes an instance back: no later pass can ask EC2 whether it said so."""

from dataclasses import replace

from autoscaler.domain.facts.snapshot import Record, RecordState
from autoscaler.errors import ConflictError, TransientError
from autoscaler.ports import Ports, StoredState

_MAY_BE_USED = (RecordState.REQUESTED, RecordState.STARTING, RecordState.REGISTERED)
_TRIES = 3


def note(ports: Ports, stored: StoredState, instance_id: str) -> StoredState:
    """Note an announcement on all records of a machine, without the lease; return the state as it is then."""
    records = [_noted(ports, record) if record.machine == instance_id else record for record in stored.records]
    return replace(stored, records=tuple(records))


def _noted(ports: Ports, record: Record) -> Record:
    """Note it on one record. Whoever changed that meanwhile, as by registering, has it noted then."""
    for _ in range(_TRIES):
        if record.state not in _MAY_BE_USED or record.is_interrupted(ports.clock()):
            return record
        noted = replace(record, interrupted_at=ports.clock())
        try:
            ports.state.change_record(noted, expected=record.state)
        except ConflictError:
            record = ports.state.record(record.instance_id) or replace(record, state=RecordState.GONE)
        else:
            ports.log("interruption_noted", instance_id=record.instance_id, pool=record.pool, state=str(record.state))
            return noted
    raise TransientError(f"the record of {record.instance_id} changes all the time")
