"""Ranges for durations and starts: from few values and from many, and what past predictions make of them."""

from dataclasses import replace
from math import exp
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.domain.facts.job_stats import Estimate, JobRow, JobTracker, Skill, Spread, Subject, WaitingItem
from autoscaler.domain.forecast.durations import (
    HALF_LIFE_SECONDS,
    HALF_LIFE_VALUES,
    STEPS_KEPT,
    best_row,
    duration_of,
    left_of,
    note_end,
    note_start,
    note_value,
    quantile,
    start_kinds,
    start_of,
    subjects_of,
    sum_of,
)

NOW = 1_800_000_000.0
VALUES = st.lists(st.floats(1.0, 100_000.0), min_size=1, max_size=80)


def spread_of(values, at=NOW):
    spread = Spread()
    for value in values:
        spread = note_value(spread, value, at)
    return spread


def a_row(values, job="job", signature=""):
    return JobRow(controller="main", subject=Subject(job, signature), pool="cpu", first_at=NOW, seen_at=NOW, durations=spread_of(values))


@given(VALUES)
def test_quantiles_rise_lie_among_the_values_and_the_steps_are_bounded(values):
    spread = spread_of(values)
    quantiles = [quantile(spread, share / 10) for share in range(11)]
    assert quantiles == sorted(quantiles)
    assert min(values) * 0.969 <= quantiles[0]
    assert quantiles[-1] <= max(values) * 1.031
    assert len(spread.weights) <= STEPS_KEPT
    assert spread.count == len(values)


def test_a_value_weighs_half_after_thirty_more_and_after_thirty_days():
    old_step = next(iter(spread_of([10.0]).weights))
    later = spread_of([10.0] + [1000.0] * int(HALF_LIFE_VALUES))
    assert later.weights[old_step] == pytest.approx(0.5, abs=0.01)
    month = note_value(spread_of([10.0]), 1000.0, NOW + HALF_LIFE_SECONDS)
    assert month.weights[old_step] == pytest.approx(0.5, abs=0.02)


def test_what_a_job_takes_now_counts_for_more_than_what_it_took():
    assert quantile(spread_of([100.0] * 100 + [300.0] * 60), 0.5) == pytest.approx(300, rel=0.03)


@pytest.mark.parametrize("sigma", [0.05, 0.3, 1.0])
def test_the_range_holds_for_four_builds_in_five(sigma):
    chance = Random(1)
    row, tracker, held = a_row([]), JobTracker(), []
    for _ in range(2000):
        seconds = 600.0 * exp(chance.gauss(0, sigma))
        if predicted := duration_of(row, tracker):
            held.append(predicted.low <= seconds <= predicted.high)
        tracker = note_end(tracker, row, seconds, NOW)
        row = replace(row, durations=note_value(row.durations, seconds, NOW))
    assert 0.75 <= sum(held) / len(held) <= 0.85


def test_of_few_builds_the_range_is_as_wide_as_those_of_other_jobs_needed():
    chance = Random(2)
    tracker = JobTracker()
    for _ in range(60):
        first, second = (exp(chance.gauss(6, 0.1)) for _ in range(2))
        tracker = note_end(tracker, a_row([first]), second, NOW)
    narrow, unknown = duration_of(a_row([500.0]), tracker), duration_of(a_row([500.0]), JobTracker())
    assert narrow.high / narrow.low < 1.8 < unknown.high / unknown.low
    assert duration_of(a_row([]), tracker) is None
    assert duration_of(None, tracker) is None


def test_a_branch_is_predicted_from_its_project_where_that_predicts_better():
    subjects = subjects_of("app/PR-7", "job/app/job/PR-7/1", "Lint")
    assert [(one.job, one.signature) for one in subjects] == [("app/PR-7", "Lint"), ("app/*", "Lint"), ("app/PR-7", ""), ("app/*", "")]
    rows = [a_row([300.0] * 5, "app/PR-7"), a_row([60.0] * 5, "app/*", "Lint")]
    skills = {"job": Skill(error=9.0, weight=10.0), "project with signature": Skill(error=1.0, weight=10.0)}
    assert best_row(rows, skills).subject == Subject("app/*", "Lint")
    assert best_row(rows, {**skills, "job": Skill(error=0.1, weight=10.0)}).subject == Subject("app/PR-7")
    assert best_row([a_row([])], skills) is None


def test_a_freestyle_job_without_a_folder_has_no_project_and_no_signature():
    assert subjects_of("nightly", "job/nightly/1", "") == (Subject("nightly"),)


TAKES = Estimate(low=300.0, mid=600.0, high=1200.0)


def test_what_is_left_of_a_build_shrinks_then_grows_and_is_unknown_at_last():
    assert left_of(TAKES, 0.0).mid == pytest.approx(600.0)
    assert left_of(TAKES, 240.0).mid == pytest.approx(360.0)
    late = left_of(TAKES, 1200.0)
    assert 0 < late.low < late.mid < late.high
    assert left_of(TAKES, 1201.0) is None  # longer than nine in ten: what is left may be a second or a day


@given(st.floats(1.0, 1e5), st.floats(1.0, 4.0), st.floats(1.0, 4.0), st.floats(0.0, 3.0))
def test_what_is_left_is_never_negative_and_its_range_is_in_order(low, below, above, share):
    takes = Estimate(low=low, mid=low * below, high=low * below * above)
    left = left_of(takes, share * takes.high)
    if left is not None:
        assert 0.0 <= left.low <= left.mid * (1 + 1e-9)
        assert left.mid <= left.high * (1 + 1e-9) + 1e-9


def test_two_ranges_are_added_as_what_does_not_depend_on_each_other():
    total = sum_of(Estimate(low=90.0, mid=120.0, high=160.0), Estimate(low=560.0, mid=600.0, high=630.0))
    assert (total.low, total.mid, total.high) == (670.0, 720.0, 770.0)


def started(ratios, bare=180.0):
    """A tracker after starts that took so many times what was planned."""
    tracker, kinds = JobTracker(), start_kinds("a boot", "cpu", mature=True)
    for ratio in ratios:
        start, corrected = start_of(bare, kinds, tracker)
        item = WaitingItem(signature="", asked_at=NOW, start=start, bare_seconds=bare, corrected_seconds=corrected, kinds=kinds)
        tracker = note_start(tracker, item, (bare + 30.0) * ratio - 30.0, NOW)
    return tracker, kinds


def test_starts_that_always_come_late_are_predicted_late_and_others_as_planned():
    tracker, kinds = started([1.5 + number % 5 / 100 for number in range(60)])
    start, _ = start_of(180.0, kinds, tracker)
    assert start.mid == pytest.approx(210 * 1.52 - 30, rel=0.03)
    assert start.low <= start.mid <= start.high < 320
    tracker, kinds = started([0.9, 1.1] * 30)
    start, _ = start_of(180.0, kinds, tracker)
    assert start.mid == 180.0


def test_a_pool_without_a_past_is_corrected_by_what_came_in_the_others():
    tracker, _ = started([1.5 + number % 5 / 100 for number in range(60)])
    other, _ = start_of(180.0, start_kinds("a boot", "gpu", mature=True), tracker)
    assert other.low > 250
    never, _ = start_of(180.0, start_kinds("a build", "gpu", mature=True), tracker)
    assert (never.low, never.mid) == (75.0, 180.0)
