"""How long the n-th agent is kept without demand, learned from how soon demand for it came back."""

from dataclasses import replace

import pytest

from autoscaler.domain.memory import Returns, Window
from autoscaler.domain.returns import EDGES, Costs, Keeping, Needed, guessed_in_time, needed_lately, note_returns
from support.builders import NOW

# An agent of $3 an hour, three minutes of boot, and five minutes of a job's waiting at $20 an hour.
COSTS = Costs(usd_per_second=3.0 / 3600, boot_usd=0.15, wait_usd=20.0 * 300 / 3600)


def a_window(*peaks):
    return Window(opened_at=NOW - 7200, seen_at=NOW - 60, peaks=tuple((NOW - ago, needed) for ago, needed in peaks))


def returns(*times, jobs=1.0):
    """Returns so often within each edge."""
    counts = (*times, *(0.0,) * (len(EDGES) + 1 - len(times)))
    return Returns(times=counts, jobs=tuple(count * jobs for count in counts))


def keep(seen=None, at_most=7200.0, costs=COSTS, fixed=None):
    return Keeping(returns=seen or {}, costs=costs, fixed_seconds=fixed, at_most_seconds=at_most)


def noted_of(known, window, needed, executors=1, boots_a_job=2.0):
    return note_returns(known, window, needed, NOW, executors=executors, boots_a_job=boots_a_job)


def within(seconds, times=50.0, jobs=1.0):
    return returns(*(0.0,) * EDGES.index(seconds), times, jobs=jobs)


def test_before_returns_were_seen_the_dearer_the_replacement_the_longer_an_agent_is_kept():
    cheap, dear = (replace(COSTS, wait_usd=COSTS.wait_usd * factor) for factor in (0.1, 2.0))
    assert keep(costs=cheap).seconds(1) < keep().seconds(1) < keep(costs=dear).seconds(1)


def test_a_few_returns_do_not_yet_outweigh_what_is_so_anywhere():
    assert keep({"1": within(14_400.0, times=1.0)}).seconds(1) == keep().seconds(1)


def test_an_operator_may_fix_it():
    assert keep({"1": within(480.0)}, fixed=77.0).seconds(1) == 77.0


def test_demand_that_comes_back_soon_is_waited_for_and_no_longer():
    assert keep({"1": within(480.0)}).seconds(1) == 480.0


def test_demand_that_comes_back_late_is_not_waited_for():
    assert keep({"1": within(14_400.0)}).seconds(1) == 0.0


def test_the_more_jobs_wait_the_longer_it_is_worth_keeping():
    alone, together = (within(3600.0, jobs=jobs) for jobs in (1.0, 4.0))
    assert (keep({"1": alone}).seconds(1), keep({"1": together}).seconds(1)) == (0.0, 3600.0)


def test_no_longer_than_the_operator_allows():
    assert keep({"1": within(480.0)}, at_most=300.0).seconds(1) <= 300.0


def test_a_number_of_agents_of_which_nothing_is_known_is_taken_for_like_the_others():
    assert keep({"1": within(480.0)}).seconds(40) == 480.0


def test_levels_are_learned_apart():
    learned = keep({"1": within(480.0), "4": within(14_400.0)})
    assert (learned.seconds(1), learned.seconds(9)) == (480.0, 0.0)


@pytest.mark.parametrize(("demand", "levels"), [(3, {}), (5, {"2": 0.5}), (12, {"2": 1.0})])
def test_each_agent_that_is_needed_again_is_noted_once(demand, levels):
    """Four executors an agent; one agent is needed now, three were ten minutes ago."""
    noted = noted_of({}, a_window((600, 3), (60, 1)), Needed(present=demand), executors=4)
    assert {level: round(sum(seen.times), 1) for level, seen in noted.items()} == pytest.approx(levels, abs=0.1)


def test_a_return_is_noted_by_how_long_it_was_away_and_how_many_jobs_waited():
    noted = noted_of({}, a_window((600, 3), (60, 1)), Needed(present=7), executors=4)["2"]
    assert noted.times[EDGES.index(900.0)] == 0.5
    assert noted.jobs[EDGES.index(900.0)] == 1.5


def test_of_jobs_shorter_than_a_boot_one_agent_spares_several_the_waiting():
    """Five jobs that take half a boot each: the first agent runs one at once and one half a boot later, and so does the second."""
    noted = noted_of({}, a_window((600, 3), (60, 0)), Needed(present=5), boots_a_job=0.5)
    assert sum(noted["1"].jobs) == 1.5
    assert sum(noted["2"].jobs) == pytest.approx((1.5 + 1.0) / 2, abs=0.01)


def test_all_agents_together_spare_each_job_one_wait():
    noted = noted_of({}, a_window((60, 0)), Needed(present=3), boots_a_job=0.1)
    assert sum(noted["1"].jobs) + 2 * sum(noted["2"].jobs) == pytest.approx(3.0, abs=0.02)


def test_what_was_never_needed_before_counts_as_away_for_very_long():
    assert noted_of({}, a_window((60, 0)), Needed(present=1), executors=4)["1"].times[-1] == 1.0


def test_the_past_fades():
    before = {"1": within(60.0)}
    noted = noted_of(before, a_window((60, 0)), Needed(present=1), executors=4)["1"]
    assert noted.times[EDGES.index(60.0)] == pytest.approx(49.5)


def test_where_nothing_is_remembered_nothing_is_noted():
    assert noted_of({}, None, Needed(present=5), executors=4) == {}


def test_as_many_are_kept_as_were_needed_no_longer_ago_than_each_is_kept():
    peaks = a_window((3000, 9), (1000, 5), (0, 2))
    assert needed_lately(peaks, keep(fixed=1800.0), NOW) == 5
    assert needed_lately(peaks, keep({"4": within(3600.0, jobs=4.0), "3": within(60.0)}), NOW) == 9
    assert needed_lately(peaks, keep({"3": within(60.0), "2": within(60.0), "4": within(60.0)}), NOW) == 2


def test_a_job_that_was_foreseen_would_not_have_waited():
    noted = noted_of({}, a_window((600, 3), (60, 1)), Needed(present=6, foreseen=6), executors=4)
    assert sum(noted["2"].times) == pytest.approx(1.0, abs=0.02)
    assert sum(noted["2"].jobs) == pytest.approx(1.0, abs=0.03)


def test_a_job_that_was_guessed_at_would_not_have_waited_either_and_is_a_return_all_the_same():
    before = replace(a_window((600, 8), (60, 3)), guessed=3.0)
    noted = noted_of({}, before, Needed(present=8), executors=1)
    assert sum(noted["3"].times) == pytest.approx(1.0, abs=0.02)
    assert sum(noted["3"].jobs) == pytest.approx(2.0 / 4, abs=0.02)  # two of five were not guessed at: agents 4 and 5 would have run them
    assert sum(noted["4"].jobs) == 0.0


def test_a_burst_of_many_agents_outweighs_no_more_than_one_of_a_few():
    few, many = (noted_of({}, a_window((600, 99), (60, low)), Needed(present=2 * low + 1), executors=1) for low in (1, 31))
    assert (sum(few["2"].times), sum(many["6"].times)) == (pytest.approx(1.0, abs=0.02), pytest.approx(1.0, abs=0.02))


def test_what_is_guessed_at_counts_as_its_agents_boot_and_no_longer_than_it_is_guessed_at():
    """A look a minute, three minutes of boot; the first look guesses at two executors."""
    window, counted = a_window((60, 0)), []
    for look, guessed in enumerate((2, 2, 2, 2, 1, 0)):
        now = NOW + look * 60
        at = guessed_in_time(window, Needed(present=0, guessed=guessed), 180.0, now)
        window = replace(window, seen_at=now, guessed=at)
        counted.append(round(at, 2))
    assert counted == [0.67, 1.33, 2.0, 2.0, 1.0, 0.0]
    assert guessed_in_time(None, Needed(present=0, guessed=2), 180.0, NOW) == 0.0
