"""Notes on the records that EC2 takes an instance back: no later pass can ask EC2 whether it said so."""

from dataclasses import replace

from autoscaler.control import records
from autoscaler.domain.facts.snapshot import Record, RecordState
from autoscaler.ports import Ports, StoredState

_MAY_BE_USED = (RecordState.REQUESTED, RecordState.STARTING, RecordState.REGISTERED)


def note(ports: Ports, stored: StoredState, instance_id: str) -> StoredState:
    """Note an announcement on all records of a machine, without the lease; return the state as it is then."""
    noted = [_noted(ports, record) if record.machine == instance_id else record for record in stored.records]
    return replace(stored, records=tuple(noted))


def _noted(ports: Ports, record: Record) -> Record:
    """Note it on one record, also if somebody changes that at the same moment, as by registering."""
    now = ports.clock()

    def interrupted(read: Record) -> Record | None:
        is_news = read.state in _MAY_BE_USED and not read.is_interrupted(now)
        return replace(read, interrupted_at=now) if is_news else None

    noted = records.note(ports.state, record, interrupted)
    if noted is None:
        return replace(record, state=RecordState.GONE)
    if noted.interrupted_at == now:
        ports.log("interruption_noted", instance_id=record.instance_id, pool=record.pool, state=str(noted.state))
    return noted
