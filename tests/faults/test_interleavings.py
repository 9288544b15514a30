"""Any two actors at once, at every place where one can be between two outside calls of the other."""

from itertools import combinations

import pytest

from support.forks import ONE_IN, in_a_process
from support.interleaving import FUNCTIONS, MOMENTS
from support.interleaving_ordered import PAIRS as ORDERED_PAIRS
from support.interleaving_shared import LENDING_MOMENTS, SHARED_FUNCTIONS, SHARED_MOMENTS

PAIRS = [(one.__name__, other.__name__) for one, other in combinations(FUNCTIONS, 2)]
PAIRS += [(function.__name__, moment.__name__) for function in FUNCTIONS for moment in MOMENTS]
SHARED_PAIRS = [(one.__name__, other.__name__) for one, other in combinations(SHARED_FUNCTIONS, 2)]
SHARED_PAIRS += [(function.__name__, moment.__name__) for function in SHARED_FUNCTIONS for moment in SHARED_MOMENTS]
SHARED_PAIRS += [(function, moment.__name__) for function in ("scale_up", "scale_down") for moment in LENDING_MOMENTS]


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=lambda name: name)
def test_two_at_once_with_at_most_two_preemptions(one, other, record_property):
    told = in_a_process("support.interleaving", one, other, ONE_IN)
    record_property("counted", ("schedules of two", told["schedules"]))
    assert told["broken"] == []
    assert all(told["calls"][name] > 3 for name in (one, other) if name in {function.__name__ for function in FUNCTIONS})


@pytest.mark.parametrize("other", [actor.__name__ for actor in (*FUNCTIONS, *MOMENTS) if actor.__name__ != "scale_down"])
def test_two_at_once_where_the_agent_that_retires_is_stopped(other, record_property):
    told = in_a_process("support.interleaving", "scale_down", other, ONE_IN, "warm")
    record_property("counted", ("schedules of two", told["schedules"]))
    assert told["broken"] == []
    assert told["calls"]["scale_down"] > 3


def test_more_than_two_at_once_with_any_preemptions(record_property):
    told = in_a_process("support.interleaving", "random", str(150 // int(ONE_IN)))
    record_property("counted", ("random schedules", told["schedules"]))
    assert told["broken"] == []


@pytest.mark.parametrize(("one", "other"), SHARED_PAIRS, ids=lambda name: name)
def test_two_at_once_where_controllers_share_machines(one, other, record_property):
    told = in_a_process("support.interleaving_shared", one, other, str(2 * int(ONE_IN) - 1))  # all in `make slow`, as of the others
    record_property("counted", ("schedules of two", told["schedules"]))
    assert told["broken"] == []
    assert all(told["calls"][function.__name__] > 3 for function in SHARED_FUNCTIONS if function.__name__ in {one, other})


@pytest.mark.parametrize(("one", "other"), [(one.__name__, other.__name__) for one, other in ORDERED_PAIRS], ids=lambda name: name)
def test_two_at_once_where_runs_are_ordered_and_lost_builds_run_again(one, other, record_property):
    told = in_a_process("support.interleaving_ordered", one, other, str(2 * int(ONE_IN) - 1))
    record_property("counted", ("schedules of two", told["schedules"]))
    assert told["broken"] == []
    assert told["calls"][one] > 3
