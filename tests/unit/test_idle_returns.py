"""How long the n-th agent is kept without demand, learned from how soon demand for it came back."""

from dataclasses import replace
from math import inf

import pytest

from autoscaler.domain.facts.memory import IdleReturns
from autoscaler.domain.forecast.keeping import EDGES, Costs, Keeping, Missed, needed_lately, note_returns
from support.builders import NOW, a_window

# An agent of $3 an hour, three minutes of boot, and five minutes of a job's waiting at $20 an hour.
COSTS = Costs(usd_per_second=3.0 / 3600, boot_usd=0.15, wait_usd=20.0 * 300 / 3600)


def needed_at(*peaks):
    return a_window(opened_at=NOW - 7200, seen_at=NOW - 60, peaks=tuple((NOW - ago, needed) for ago, needed in peaks))


def returns(*times, jobs=1.0):
    """Returns so often within each edge."""
    counts = (*times, *(0.0,) * (len(EDGES) + 1 - len(times)))
    return IdleReturns(times=counts, jobs=tuple(count * jobs for count in counts))


def keep(seen=None, at_most=7200.0, costs=COSTS, fixed=None):
    return Keeping(idle_returns=seen or {}, costs=costs, fixed_seconds=fixed, at_most_seconds=at_most)


def within(seconds, times=50.0, jobs=1.0):
    return returns(*(0.0,) * EDGES.index(seconds), times, jobs=jobs)


def test_before_returns_were_seen_the_dearer_the_replacement_the_longer_an_agent_is_kept():
    cheap, dear = (replace(COSTS, wait_usd=COSTS.wait_usd * factor) for factor in (0.1, 2.0))
    assert keep(costs=cheap).seconds(1) < keep().seconds(1) < keep(costs=dear).seconds(1)


def test_before_returns_were_seen_even_one_that_is_hard_to_replace_is_not_kept_for_ever_since_half_are_never_missed():
    assert keep(costs=replace(COSTS, wait_usd=COSTS.wait_usd * 8), at_most=28_800.0).seconds(1) == 1800.0


def test_a_few_returns_do_not_yet_outweigh_what_is_so_anywhere():
    assert keep({"1": within(14_400.0, times=1.0)}).seconds(1) == keep().seconds(1)


def test_an_operator_may_fix_it():
    assert keep({"1": within(480.0)}, fixed=77.0).seconds(1) == 77.0


def test_what_keeping_spares_is_told_each_time_an_agent_is_not_needed_beside_giving_it_up_at_once():
    """Kept for four minutes of the eight, on average, it costs $0.30; given up, a boot of $0.15 and the waiting of $1.67."""
    assert keep({"1": within(480.0, times=1e6)}).spared_usd(1) == pytest.approx(COSTS.boot_usd + COSTS.wait_usd - 0.3, abs=0.01)


@pytest.mark.parametrize("kept", [{"seen": {"1": within(28_800.0, times=1e6)}}, {"fixed": 600.0}])
def test_where_it_is_given_up_at_once_or_an_operator_has_fixed_it_keeping_spares_nothing(kept):
    assert keep(**kept).spared_usd(1) == pytest.approx(0.0, abs=1e-3)


def test_demand_that_comes_back_soon_is_waited_for_and_no_longer():
    assert keep({"1": within(480.0)}).seconds(1) == 480.0


def test_demand_that_comes_back_late_is_not_waited_for():
    assert keep({"1": within(14_400.0)}).seconds(1) == 0.0


def test_the_more_jobs_wait_the_longer_it_is_worth_keeping():
    alone, together = (within(3600.0, jobs=jobs) for jobs in (1.0, 4.0))
    assert (keep({"1": alone}).seconds(1), keep({"1": together}).seconds(1)) == (0.0, 3600.0)


def test_no_longer_than_the_operator_allows():
    assert keep({"1": within(480.0)}, at_most=300.0).seconds(1) <= 300.0


def test_a_number_of_agents_of_which_nothing_is_known_is_taken_for_like_those_near_it():
    learned = keep({"1": within(480.0), "5": within(14_400.0)})
    assert (learned.seconds(2), learned.seconds(40)) == (480.0, 0.0)


def test_a_burst_that_comes_once_in_days_is_not_kept_for_because_single_jobs_come_often():
    learned = keep({"1": within(480.0, times=500.0), "6": returns(*(0.0,) * len(EDGES), 1.0), "7": returns(*(0.0,) * len(EDGES), 1.0)})
    assert learned.seconds(70) <= 120.0 < learned.seconds(1)


def test_levels_are_learned_apart():
    learned = keep({"1": within(480.0), "4": within(14_400.0)})
    assert (learned.seconds(1), learned.seconds(9)) == (480.0, 0.0)


def test_as_many_are_kept_as_were_needed_no_longer_ago_than_each_is_kept():
    peaks = needed_at((3000, 9), (1000, 5), (0, 2))
    assert needed_lately(peaks, keep(fixed=1800.0).seconds, NOW) == 5
    assert needed_lately(peaks, keep({"4": within(3600.0, jobs=4.0), "3": within(60.0)}).seconds, NOW) == 9
    assert needed_lately(peaks, keep({"3": within(60.0), "2": within(60.0), "4": within(60.0)}).seconds, NOW) == 2


def test_of_the_agents_that_were_needed_at_once_the_first_ones_may_be_worth_keeping_longer_than_the_last():
    assert needed_lately(needed_at((1000, 9), (0, 0)), keep({"4": within(14_400.0), "3": within(3600.0, jobs=4.0)}).seconds, NOW) == 7


def test_a_return_is_noted_by_how_long_it_was_away_and_the_waits_it_would_have_spared():
    noted = note_returns({}, [Missed(number=2, seconds=600.0, waits=3.0), Missed(number=3, seconds=600.0, waits=1.0)])["2"]
    assert noted.times[EDGES.index(900.0)] == pytest.approx(1.0, abs=0.02)
    assert noted.jobs[EDGES.index(900.0)] == pytest.approx(2.0, abs=0.02)


def test_what_was_never_needed_before_counts_as_away_for_very_long():
    assert note_returns({}, [Missed(number=1, seconds=inf, waits=1.0)])["1"].times[-1] == 1.0


def test_the_past_fades():
    noted = note_returns({"1": within(60.0)}, [Missed(number=1, seconds=60.0, waits=1.0)])["1"]
    assert noted.times[EDGES.index(60.0)] == pytest.approx(50.5)


def test_a_burst_of_many_agents_outweighs_no_more_than_one_of_a_few():
    few, many = (
        note_returns({}, [Missed(number=n, seconds=600.0, waits=1.0) for n in numbers]) for numbers in (range(2, 4), range(32, 64))
    )
    assert (sum(few["2"].times), sum(many["6"].times)) == (pytest.approx(1.0, abs=0.02), pytest.approx(1.0, abs=0.02))
