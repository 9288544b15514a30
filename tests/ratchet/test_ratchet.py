"""The figures of `make walk` may only fall."""

import os
import subprocess
import sys

from packaging_root import ROOT
from ratchet.record import exceeded
from support.forks import paths


def test_no_figure_is_higher_than_recorded():
    """A process of its own: what other tests have left in caches would hide functions."""
    command = [sys.executable, "-m", "ratchet", "--figures"]
    facts = {"cwd": ROOT, "env": {**os.environ, "PYTHONPATH": paths()}, "text": True}
    done = subprocess.run(command, check=False, capture_output=True, **facts)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_figure_that_rises_is_named_with_both_values():
    (line,) = exceeded({"functions": 1_201, "modules": 5}, {"functions": 1_200, "modules": 6})
    assert line.startswith("functions: 1,201, recorded 1,200. ")


def test_a_figure_without_a_record_and_a_record_without_a_figure_are_named():
    lines = exceeded({"functions": 1, "new": 2}, {"functions": 1, "gone": 2})
    assert [line.partition(":")[0] for line in lines] == ["gone", "new"]
