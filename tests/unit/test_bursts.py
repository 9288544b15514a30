"""Which agents a burst of demand needs again, and what waiting they would have spared: the same however often the schedule looks."""

from dataclasses import replace
from math import inf

import pytest

from autoscaler.domain.forecast.keeping import Needed, agents_missed, follow_burst, guessed_in_time, is_burst_over
from support.builders import NOW, a_window

BOOT = 180.0


def needed_at(*peaks, guessed=0.0):
    return a_window(opened_at=NOW - 7200, seen_at=NOW - 60, peaks=tuple((NOW - ago, needed) for ago, needed in peaks), guessed=guessed)


def missed_of(window, *looks, executors=1):
    """Agents that a burst needed, by number: after how many seconds, and the waits. ``looks``: (seconds from now, what is needed then)."""
    for at, needed in looks:
        burst = follow_burst(window, needed, NOW + at, executors=executors, boot_seconds=BOOT)
        window = replace(window, burst=burst)
    if burst is None:
        return {}
    found = agents_missed(burst, executors=executors, boot_seconds=BOOT)
    return {agent.number: (agent.seconds, round(agent.waits, 2)) for agent in found}


def at_once(window, needed, **how):
    return missed_of(window, (0, needed), **how)


@pytest.mark.parametrize(("demand", "numbers"), [(3, set()), (5, {2}), (12, {2, 3})])
def test_each_agent_that_is_needed_again_is_named(demand, numbers):
    """Four executors an agent; one agent is needed now, three were ten minutes ago."""
    assert set(at_once(needed_at((600, 3), (60, 1)), Needed(present=demand), executors=4)) == numbers


def test_it_says_how_long_it_was_not_needed_and_how_many_waits_it_would_have_spared():
    assert at_once(needed_at((600, 3), (60, 1)), Needed(present=7), executors=4) == {2: (600, 3.0)}


def test_what_was_never_needed_before_was_away_for_very_long():
    assert at_once(needed_at((60, 0)), Needed(present=1), executors=4) == {1: (inf, 1.0)}


def test_where_nothing_is_remembered_nothing_begins():
    assert follow_burst(None, Needed(present=5), NOW, executors=4, boot_seconds=BOOT) is None


def test_an_agent_spares_the_jobs_that_would_have_run_on_its_own_executors():
    found = at_once(needed_at((600, 3), (60, 0)), Needed(present=5), executors=2)
    assert [waits for _, waits in found.values()] == [2.0, 2.0, 1.0]


def test_a_burst_is_the_same_whether_it_is_seen_at_once_or_in_many_looks():
    window = needed_at((600, 3), (60, 0))
    often = [(after, Needed(present=1 + after)) for after in range(7)]
    at_last = missed_of(window, (6, Needed(present=7)), executors=4)
    assert at_last == {1: (606, 4.0), 2: (606, 3.0)}
    for number, (seconds, waits) in missed_of(window, *often, executors=4).items():
        assert (seconds, waits) == (pytest.approx(at_last[number][0], abs=6), pytest.approx(at_last[number][1], abs=0.1))


def test_a_job_that_comes_while_the_agent_boots_would_wait_for_the_rest_of_the_boot():
    found = missed_of(needed_at((60, 0)), (0, Needed(present=1)), (BOOT / 2, Needed(present=2)), executors=4)
    assert found == {1: (inf, 1.5)}


def test_demand_that_goes_and_comes_back_within_a_burst_is_one_return():
    looks = [(0, Needed(present=2)), (15, Needed(present=1)), (30, Needed(present=2))]
    assert missed_of(needed_at((600, 2), (60, 0)), *looks) == {1: (600, 1.0), 2: (600, 1.0)}


def test_a_burst_is_over_when_an_agent_asked_for_at_its_beginning_would_be_there():
    burst = follow_burst(needed_at((60, 0)), Needed(present=1), NOW, executors=1, boot_seconds=BOOT)
    assert [is_burst_over(burst, NOW + after, BOOT) for after in (BOOT - 1, BOOT)] == [False, True]


def test_demand_that_still_rises_after_it_is_a_burst_of_its_own():
    window = needed_at((600, 3), (60, 0))
    window = replace(window, burst=follow_burst(window, Needed(present=1), NOW, executors=1, boot_seconds=BOOT))
    later = replace(window, peaks=((NOW - 600, 3), (NOW + BOOT - 5, 1)))
    assert set(missed_of(later, (BOOT, Needed(present=2)))) == {2}
    assert missed_of(later, (BOOT, Needed(present=1))) == {}


def test_a_job_of_a_stage_that_was_foreseen_would_not_have_waited():
    window = needed_at((600, 3), (60, 1))
    both = missed_of(window, (0, Needed(present=1, forecast=3)), (60, Needed(present=4)))
    assert both == {2: (600, 0.0), 3: (600, 0.0), 4: (inf, 0.0)}
    assert at_once(window, Needed(present=6, forecast=6), executors=4) == {2: (600, 2.0), 3: (600, 0.0)}


def test_a_job_that_was_guessed_at_would_not_have_waited_either_and_its_agent_is_needed_again_all_the_same():
    """Two of the five that come were not guessed at: the first agents would have run them."""
    found = at_once(needed_at((600, 8), (60, 3), guessed=3.0), Needed(present=8))
    assert [waits for _, waits in found.values()] == [1.0, 1.0, 0.0, 0.0, 0.0]


def test_a_guess_that_has_come_is_not_taken_for_a_surprise_by_the_next_look():
    before = needed_at((600, 8), (60, 0), guessed=2.0)
    first = follow_burst(before, Needed(present=2), NOW, executors=1, boot_seconds=BOOT)
    found = missed_of(replace(before, guessed=0.0, burst=first), (15, Needed(present=2)))
    assert [waits for _, waits in found.values()] == [0.0, 0.0]


def test_jobs_that_were_guessed_at_only_after_the_burst_began_would_not_have_waited_either():
    before = needed_at((600, 8), (60, 0))
    first = follow_burst(before, Needed(present=2), NOW, executors=1, boot_seconds=BOOT)
    found = missed_of(replace(before, guessed=2.0, burst=first), (0, Needed(present=4)))
    assert [waits for _, waits in found.values()] == [1.0, 1.0, 0.0, 0.0]


def test_what_is_guessed_at_counts_as_its_agents_boot_and_no_longer_than_it_is_guessed_at():
    """A look a minute, three minutes of boot; the first look guesses at two executors."""
    window, counted = needed_at((60, 0)), []
    for look, guessed in enumerate((2, 2, 2, 2, 1, 0)):
        now = NOW + look * 60
        at = guessed_in_time(window, Needed(present=0, guessed=guessed), BOOT, now)
        window = replace(window, seen_at=now, guessed=at)
        counted.append(round(at, 2))
    assert counted == [0.67, 1.33, 2.0, 2.0, 1.0, 0.0]
    assert guessed_in_time(None, Needed(present=0, guessed=2), BOOT, NOW) == 0.0
