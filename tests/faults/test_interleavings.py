"""Any two actors at once, at every place where one can be between two outside calls of the other."""

from itertools import combinations

import pytest

from support.forks import ONE_IN, in_a_process
from support.interleaving import FUNCTIONS, MOMENTS
from support.interleaving_ordered import PAIRS as ORDERED_PAIRS
from support.interleaving_shared import LENDING_MOMENTS, SHARED_FUNCTIONS, SHARED_MOMENTS


def by_first(pairs):
    """Of each actor the others with which it is tried: those share a process, and the scene in which they meet."""
    found = {}
    for one, other in pairs:
        found.setdefault(one.__name__, []).append(other.__name__)
    return [pytest.param(one, others, id=one) for one, others in found.items()]


PAIRS = [*combinations(FUNCTIONS, 2), *((function, moment) for function in FUNCTIONS for moment in MOMENTS)]
RETIRING = [(function, other) for function in FUNCTIONS if function.__name__ == "scale_down" for other in (*FUNCTIONS, *MOMENTS)]
SHARED_PAIRS = [*combinations(SHARED_FUNCTIONS, 2), *((function, moment) for function in SHARED_FUNCTIONS for moment in SHARED_MOMENTS)]
SHARED_PAIRS += [(one, moment) for one in SHARED_FUNCTIONS if one.__name__ in {"scale_up", "scale_down"} for moment in LENDING_MOMENTS]
CALLING = {function.__name__ for function in (*FUNCTIONS, *SHARED_FUNCTIONS)}


def assert_whole(record_property, module, one, others, *how):
    told = in_a_process(f"support.{module}", one, ",".join(others), *how)
    record_property("counted", ("schedules of two", sum(pair["schedules"] for pair in told.values())))
    assert {other: pair["broken"] for other, pair in told.items() if pair["broken"]} == {}
    assert set(told) == set(others)
    called = [(other, name, calls) for other in others for name, calls in told[other]["calls"].items() if name in {*CALLING, one}]
    assert [one for one in called if one[2] <= 3] == []


@pytest.mark.parametrize(("one", "others"), by_first(PAIRS))
def test_two_at_once_with_at_most_two_preemptions(one, others, record_property):
    assert_whole(record_property, "interleaving", one, others, ONE_IN)


@pytest.mark.parametrize(("one", "others"), by_first((one, other) for one, other in RETIRING if one is not other))
def test_two_at_once_where_the_agent_that_retires_is_stopped(one, others, record_property):
    assert_whole(record_property, "interleaving", one, others, ONE_IN, "warm")


def test_more_than_two_at_once_with_any_preemptions(record_property):
    told = in_a_process("support.interleaving", "random", str(150 // int(ONE_IN)))
    record_property("counted", ("random schedules", told["schedules"]))
    assert told["broken"] == []


@pytest.mark.parametrize(("one", "others"), by_first(SHARED_PAIRS))
def test_two_at_once_where_controllers_share_machines(one, others, record_property):
    assert_whole(record_property, "interleaving_shared", one, others, str(2 * int(ONE_IN) - 1))  # all in `make slow`, as of the others


@pytest.mark.parametrize(("one", "others"), by_first(ORDERED_PAIRS))
def test_two_at_once_where_runs_are_ordered_and_lost_builds_run_again(one, others, record_property):
    assert_whole(record_property, "interleaving_ordered", one, others, str(2 * int(ONE_IN) - 1))
