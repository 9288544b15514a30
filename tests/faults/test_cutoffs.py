"""Every function, cut off at every outside call in every way: nothing is killed, nothing leaks, nothing is launched twice."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
FUNCTIONS = ["publish_metrics", "scale_up", "scale_down", "register_agent", "instance_events", "scale_up by hand", "scale_down by hand"]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_wherever_a_function_is_cut_off_the_next_passes_make_it_good(function, record_property):
    path = os.pathsep.join([str(TESTS), str(TESTS.parent), str(TESTS.parent / "layers" / "core")])
    command = [sys.executable, "-m", "support.cutoffs", function]  # forks: a process of its own
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout)
    record_property("counted", f"{function}: cut off in {told['cases']} ways, in {told['invocations']} invocations")
    assert told["broken"] == []
    assert told["cases"] > 50
