"""Where machines could not be had lately, an agent that is there is worth more; pure functions of what was asked, and what was had."""

import pytest

from autoscaler.domain.facts.memory import CapacityDelay
from autoscaler.domain.forecast.durations import expected_seconds, note_had, note_refused
from support.builders import NOW

BOOT = 200.0


def asked(*asks):
    """Ask at these seconds; True: an agent was had."""
    known = None
    for at, had in asks:
        known = (note_had if had else note_refused)(known, NOW + at)
    return known


def short_from(since, until):
    """Ask each minute; the last time something is had."""
    return [(at, False) for at in range(since, until, 60)] + [(until, True)]


def expected(known, at=0.0, boot=BOOT):
    return expected_seconds(known, NOW + at, boot)


def test_who_never_asked_expects_nothing():
    assert expected(None) == 0.0


def test_who_always_got_what_was_asked_for_expects_nothing():
    assert expected(asked((0, True), (10_000, True))) == 0.0


def test_a_shortage_is_expected_again_as_often_as_it_came():
    seldom = asked(*short_from(0, 1800), *((hour * 3600, True) for hour in range(1, 20)))
    often = asked(*short_from(0, 1800), *short_from(7200, 9000))
    assert 0.0 < expected(seldom, at=90_000) < expected(often, at=90_000)


def test_one_long_shortage_costs_more_than_many_short_ones_of_the_same_length_in_all():
    long = asked(*short_from(0, 3600), *((hour * 7200, True) for hour in range(1, 6)))
    short = asked(*(ask for hour in range(6) for ask in short_from(hour * 7200, hour * 7200 + 600)))
    assert long.seconds == pytest.approx(short.seconds, rel=0.05)
    assert expected(long, at=50_000) > 2 * expected(short, at=50_000)


def test_jobs_that_come_meanwhile_weigh_more_where_few_come_within_a_boot():
    known = asked(*short_from(0, 1800))
    assert expected(known, at=1800, boot=60.0) > expected(known, at=1800, boot=600.0) > 0.0


def test_a_shortage_counts_while_it_lasts():
    known = asked((0, False), (60, False))
    assert 0.0 < expected(known, at=90) < expected(known, at=300)


def test_a_shortage_that_nobody_asks_about_any_more_lasts_no_longer_than_it_was_seen():
    known = asked((0, False), (60, False))
    assert expected(known, at=5000) == expected(known, at=50_000) < expected(known, at=600)


def test_what_is_refused_the_next_day_is_another_shortage():
    known = asked((0, False), (60, False), (86_400, False), (86_460, True))
    assert (known.asks, known.seconds, known.since_at) == (1.99, pytest.approx(0.99 * 60 + 60), None)


def test_what_is_had_the_next_day_does_not_make_a_day_of_a_minute():
    assert asked((0, False), (60, False), (86_400, True)).seconds == 60


def test_launches_of_one_burst_are_one_ask():
    assert asked(*((at, True) for at in range(0, 600, 60))).asks == 1.0


def test_an_agent_every_few_minutes_is_asked_for_more_than_once():
    assert asked(*((at, True) for at in range(0, 2400, 300))).asks > 2


def test_long_ago_counts_less():
    fresh = CapacityDelay()
    once = asked(*short_from(0, 1800))
    for hour in range(1, 500):
        once = note_had(once, NOW + hour * 3600)
        fresh = note_had(fresh, NOW + hour * 3600)
    assert once.seconds < 20
    assert 90 < once.asks < 101
    assert fresh.seconds == 0.0
