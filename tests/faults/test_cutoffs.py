"""Every function, cut off at every outside call in every way: nothing is killed, nothing leaks, nothing is launched twice."""

import pytest

from support.forks import ONE_IN, in_a_process

FUNCTIONS = [
    *("publish_metrics", "scale_up", "scale_down", "register_agent", "register_agent again", "register_agent for a person"),
    "instance_events",
    *("scale_up by hand", "scale_down by hand", "operate by hand"),
]


@pytest.mark.parametrize("way", ["FAILS", "LOST", "DIES", "HANGS"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_wherever_a_function_is_cut_off_the_next_passes_make_it_good(function, way, record_property):
    told = in_a_process("support.cutoffs", function, way, ONE_IN)
    record_property("counted", ("cut-offs", told["cases"]))
    assert told["broken"] == []
    assert told["met"] > 3


@pytest.mark.parametrize("way", ["FAILS", "LOST", "DIES", "HANGS"] if ONE_IN == "1" else ["LOST", "HANGS"])
@pytest.mark.parametrize("function", ["scale_up", "scale_down", "register_agent shared", "operate shared"])
def test_so_it_is_with_loans_rotations_machines_of_two_controllers_hosts_and_runs(function, way, record_property):
    one_in = 1 if function == "operate shared" else 2 * int(ONE_IN) - 1  # that makes few calls
    told = in_a_process("support.cutoffs", function, way, str(one_in), "shared")
    record_property("counted", ("cut-offs", told["cases"]))
    assert told["broken"] == []
    assert told["met"] > 3
