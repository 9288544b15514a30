"""The picture of dollars and alarms over time: it breaks where nothing was measured, draws zeros, and hides no limit that is near."""

import re

from autoscaler_workbench.ui.picture import percent_of, rang_of, spend_of, ticks_of
from autoscaler_workbench.ui.source import Past

DAY = 86_400.0


def a_past(*spend, alarms=(), every=60.0, begin=0.0, end=DAY):
    return Past(begins_at=begin, ends_at=end, spend=spend, every_seconds=every, alarms=list(alarms))


def an_alarm(*rang, state="OK", name="JobWaits"):
    return {"alarm": name, "state": state, "since_at": None, "says": "", "runbook": "", "rang": rang}


def xs(line):
    return [float(x) for x in re.findall(r"[ML]([\d.]+) ", line)]


def test_where_nothing_was_measured_the_line_breaks():
    spend = spend_of(a_past((0.0, 1.0), (3600.0, 2.0), (36_000.0, 1.0), every=3600.0), 10.0)
    assert [(xs(line)[0], xs(line)[-1]) for line in spend.lines] == [(0.0, 83.3), (416.7, 458.3)]


def test_a_zero_is_drawn_on_the_ground_and_no_measurement_is_no_picture():
    [line] = spend_of(a_past((0.0, 0.0), (60.0, 0.0)), 10.0).lines
    assert line.startswith("M0.0 100.0L")
    assert spend_of(a_past(), 10.0) is None


def test_a_limit_that_is_near_is_drawn_above_all_and_one_that_is_far_does_not_flatten_the_rest():
    near, far = (spend_of(a_past((0.0, 5.0)), limit) for limit in (10.0, 1000.0))
    assert 0 < near.limit_y < near.highest_y
    assert far.limit_y is None
    assert far.highest_y < 20


def test_periods_are_bars_and_those_that_ring_still_reach_the_end():
    [still, quiet] = rang_of(
        a_past(alarms=[an_alarm((0.0, DAY / 4)), an_alarm((DAY / 2, None), state="ALARM", name="X"), an_alarm(name="never")])
    )
    assert (still.alarm, still.rings, [(bar.left, bar.width) for bar in still.bars]) == ("X", True, [(50.0, 50.0)])
    assert (quiet.total, [(bar.left, bar.width) for bar in quiet.bars]) == ("6 h", [(0.0, 25.0)])


def test_a_minute_is_wide_enough_to_see_and_what_rang_before_is_not_told():
    [rang] = rang_of(a_past(alarms=[an_alarm((DAY - 60, DAY)), an_alarm((-120.0, -60.0), name="before")]))
    [bar] = rang.bars
    assert bar.width >= 0.4
    assert bar.left + bar.width <= 100


def test_hours_are_of_a_clock_of_24_and_a_long_time_has_days():
    assert [tick.text for tick in ticks_of(a_past())] == ["00:00", "06:00", "12:00", "18:00", "00:00"]
    assert "05 Jan" in [tick.text for tick in ticks_of(a_past(end=10 * DAY))]
    assert [tick.text for tick in ticks_of(a_past(begin=3000.0, end=7000.0))] == ["01:00", "01:15", "01:30", "01:45"]
    assert [tick.back for tick in ticks_of(a_past())] == [0, 50, 50, 50, 100]


def test_a_moment_beyond_the_picture_stands_at_its_edge():
    assert (percent_of(a_past(), -1.0), percent_of(a_past(), DAY / 2), percent_of(a_past(), 2 * DAY)) == (0.0, 50.0, 100.0)
