"""The oracle itself: it finds these decisions the same, and names the first that is not."""

import pytest

from oracle.hours import Hour, first_difference, hour_of, read, write
from oracle.runs import HERE, runs

RECORDED = HERE / "recorded"
BEFORE = [hour_of(["00 launch main cpu - 1 starved-queue"], "usd=1"), hour_of(["07 cordon main cpu #1 1 surplus"], "usd=2")]


@pytest.mark.parametrize("name", ["short", "full", "mxnet-1", "slots"])
def test_the_first_hours_decide_what_was_recorded(name):
    run = next(run for run in runs(None) if run.name == name)
    assert first_difference(read(RECORDED / f"{name}.gz"), run.play(6)) == []


def test_a_changed_step_is_named_with_its_hour():
    now = [BEFORE[0], hour_of(["07 terminate main cpu #1 1 surplus"], "usd=2")]
    said = first_difference(BEFORE, now)
    assert said[0] == "hour 1 differs"
    assert said[1:3] == ["  expected  07 cordon main cpu #1 1 surplus", "       got  07 terminate main cpu #1 1 surplus"]


def test_a_step_that_is_missing_or_new_is_named():
    assert "       got  (nothing)" in first_difference(BEFORE, [BEFORE[0], hour_of([], "usd=2")])
    assert "  expected  (nothing)" in first_difference([BEFORE[0], hour_of([], "usd=2")], BEFORE)


def test_the_same_steps_that_cost_more_differ():
    now = [BEFORE[0], hour_of(BEFORE[1].lines, "usd=3")]
    assert first_difference(BEFORE, now)[-2:] == ["  expected  usd=2", "       got  usd=3"]


def test_what_is_written_down_is_read_again(tmp_path):
    write(tmp_path / "run.gz", BEFORE, with_lines=True)
    assert read(tmp_path / "run.gz") == BEFORE
    write(tmp_path / "run.gz", BEFORE, with_lines=False)
    assert read(tmp_path / "run.gz") == [Hour(digest=hour.digest, totals=hour.totals) for hour in BEFORE]
