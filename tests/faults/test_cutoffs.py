"""Every function, cut off at every outside call in every way: nothing is killed, nothing leaks, nothing is launched twice."""

import pytest

from support.forks import ONE_IN, in_a_process

FUNCTIONS = [
    *("publish_metrics", "scale_up", "scale_down", "register_agent", "register_agent again", "register_agent for a person"),
    "instance_events",
    *("scale_up by hand", "scale_down by hand", "operate by hand"),
]
EVERY_WAY = ("FAILS", "LOST", "DIES", "HANGS")


def assert_made_good(ways, record_property, *how):
    told = in_a_process("support.cutoffs", *how)
    record_property("counted", ("cut-offs", sum(told[way]["cases"] for way in ways)))
    assert [case for way in ways for case in told[way]["broken"]] == []
    assert min(told[way]["met"] for way in ways) > 3


@pytest.mark.parametrize("function", FUNCTIONS)
def test_wherever_a_function_is_cut_off_the_next_passes_make_it_good(function, record_property):
    assert_made_good(EVERY_WAY, record_property, function, ",".join(EVERY_WAY), ONE_IN)


@pytest.mark.parametrize("function", ["scale_up", "scale_down", "register_agent shared", "operate shared"])
def test_so_it_is_with_loans_rotations_machines_of_two_controllers_hosts_and_runs(function, record_property):
    one_in = 1 if function == "operate shared" else 2 * int(ONE_IN) - 1  # that makes few calls
    ways = EVERY_WAY if ONE_IN == "1" else ("LOST", "HANGS")
    assert_made_good(ways, record_property, function, ",".join(ways), str(one_in), "shared")
