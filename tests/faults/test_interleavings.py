"""Any two actors at once, at every place where one can be between two outside calls of the other."""

import pytest

from faults.meetings import MEETINGS
from support.sampling import PARTS


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("meeting", MEETINGS)
def test_two_act_at_once_with_at_most_two_preemptions(meeting, part, ask, record_property):
    told = ask("faults.meetings", meeting, part, PARTS)
    record_property("counted", ("schedules of two", told["tried"], told["cases"]))
    assert told["broken"] == []
    assert min(told["calls"].values()) > 3, "too little can be interrupted"


@pytest.mark.parametrize("part", range(PARTS))
def test_more_than_two_act_at_once_with_any_preemptions(part, ask, record_property):
    told = ask("faults.meetings", "", part, PARTS)
    record_property("counted", ("random schedules", told["tried"], told["cases"]))
    assert told["broken"] == []
