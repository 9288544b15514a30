"""Time-lines in which two functions write one record at the same moment."""

import pytest

from autoscaler.domain.facts.snapshot import RecordState
from faults.writers import WRITE, an_agent, instance_of, record_of, registers, reserves


@pytest.mark.parametrize(("first", "second"), [(registers, reserves), (reserves, registers)], ids=["registers", "is reserved"])
def test_an_agent_that_registers_while_a_person_reserves_it_stays_theirs(first, second):
    day = an_agent()
    instance, writes = instance_of(day), []

    def meanwhile(call):
        if call == WRITE and not writes:
            writes.append(call)
            second(day)

    day.fleet.faults.meanwhile = meanwhile
    first(day)
    record = record_of(day)
    assert (record.reservation and record.reservation.person, record.state) == ("zoe", RecordState.REGISTERED)
    if first is reserves:
        assert record.trouble == ""
    day.minutes(12)  # theirs for a quarter of an hour
    assert instance.alive()
    record = day.fleet.state.records[instance.id]
    assert (record.reservation.person, record.state) == ("zoe", RecordState.REGISTERED)
