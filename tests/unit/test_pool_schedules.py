"""When a pool's schedule holds: days, midnight, days on which clocks change; and what the pool has then."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import inf
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.domain.facts.fleet import PoolSchedule, WarmPool
from autoscaler.domain.facts.pools import now_and_next, pool_at, pool_at_its_widest
from support.builders import a_pool

BERLIN, NEW_YORK, LORD_HOWE = "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"
WEEKDAYS, WEEKEND, DAILY = range(5), (5, 6), range(7)
WARM = WarmPool(min_agents=1, max_agents=3, max_age_seconds=3600.0)


def a_schedule(days=DAILY, begins="08:00", ends="18:00", zone=BERLIN, **numbers):
    begin, end = (int(text[:2]) * 60 + int(text[3:]) for text in (begins, ends))
    return PoolSchedule(
        days=frozenset(days),
        from_minute=begin,
        to_minute=end if end > begin else end + 1440,
        time_zone=ZoneInfo(zone),
        **(numbers or {"min_agents": 4}),
    )


def utc(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def told(at):
    return "for ever" if at == inf else f"{datetime.fromtimestamp(at, UTC):%a %d %H:%M:%S}".removesuffix(":00")


def spans(schedule, at, count=2):
    return [(told(span.begins_at), told(span.ends_at)) for span, _ in zip(now_and_next(schedule, utc(at)), range(count), strict=False)]


def least(schedule, at):
    return pool_at(a_pool(schedules=(schedule,)), utc(at)).min_agents


@pytest.mark.parametrize(
    ("at", "agents"),
    [
        ("2027-01-15T06:59:59", 0),  # a Friday, 07:59:59 in Berlin
        ("2027-01-15T07:00:00", 4),
        ("2027-01-15T16:59:59", 4),
        ("2027-01-15T17:00:00", 0),
        ("2027-01-16T10:00:00", 0),  # a Saturday
        ("2027-07-16T06:00:00", 4),  # in summer 08:00 comes an hour sooner
        ("2027-07-16T16:00:00", 0),
    ],
)
def test_a_schedule_holds_from_its_first_minute_until_its_last_by_its_own_clocks(at, agents):
    assert least(a_schedule(WEEKDAYS), at) == agents


def test_a_span_over_midnight_belongs_to_the_day_on_which_it_begins():
    night = a_schedule((4,), "22:00", "06:00")
    assert spans(night, "2027-01-15T12:00", 1) == [("Fri 15 21:00", "Sat 16 05:00")]
    assert (least(night, "2027-01-16T04:59"), least(night, "2027-01-15T04:59")) == (4, 0)


def test_days_that_meet_at_midnight_are_one_span_and_a_whole_week_never_ends():
    assert spans(a_schedule(WEEKEND, "00:00", "24:00"), "2027-01-16T12:00") == [
        ("Fri 15 23:00", "Sun 17 23:00"),
        ("Fri 22 23:00", "Sun 24 23:00"),
    ]
    [(_, ends)] = spans(a_schedule(DAILY, "00:00", "24:00"), "2027-01-16T12:00")
    assert ends == "for ever"


# Clocks go from 02:00 to 03:00 on 28 March and from 03:00 back to 02:00 on 31 October in Berlin, from 02:00 to 03:00 on 14 March and from
# 02:00 back to 01:00 on 7 November in New York, from 02:00 to 02:30 on 3 October and from 02:00 back to 01:30 on 4 April on Lord Howe.
@pytest.mark.parametrize(
    ("zone", "day", "begins", "ends", "span"),
    [
        (BERLIN, "2027-03-28", "08:00", "18:00", ("Sun 28 06:00", "Sun 28 16:00")),
        (BERLIN, "2027-03-28", "02:30", "04:00", ("Sun 28 01:00", "Sun 28 02:00")),
        (BERLIN, "2027-03-28", "01:00", "02:30", ("Sun 28 00:00", "Sun 28 01:00")),
        (BERLIN, "2027-03-28", "02:10", "02:50", None),
        (BERLIN, "2027-03-28", "00:00", "24:00", ("Sat 27 23:00", "Sun 28 22:00")),
        (BERLIN, "2027-10-31", "08:00", "18:00", ("Sun 31 07:00", "Sun 31 17:00")),
        (BERLIN, "2027-10-31", "02:30", "04:00", ("Sun 31 00:30", "Sun 31 03:00")),
        (BERLIN, "2027-10-31", "01:00", "02:30", ("Sat 30 23:00", "Sun 31 00:30")),
        (BERLIN, "2027-10-31", "00:00", "24:00", ("Sat 30 22:00", "Sun 31 23:00")),
        (NEW_YORK, "2027-03-14", "02:30", "09:00", ("Sun 14 07:00", "Sun 14 13:00")),
        (NEW_YORK, "2027-03-14", "22:00", "06:00", ("Mon 15 02:00", "Mon 15 10:00")),
        (NEW_YORK, "2027-11-07", "01:30", "09:00", ("Sun 07 05:30", "Sun 07 14:00")),
        (NEW_YORK, "2027-11-07", "00:00", "01:30", ("Sun 07 04:00", "Sun 07 05:30")),
        (LORD_HOWE, "2027-10-03", "02:15", "09:00", ("Sat 02 15:30", "Sat 02 22:00")),
        (LORD_HOWE, "2027-10-03", "01:00", "02:15", ("Sat 02 14:30", "Sat 02 15:30")),
        (LORD_HOWE, "2027-04-04", "01:45", "09:00", ("Sat 03 14:45", "Sat 03 22:30")),
        (LORD_HOWE, "2027-04-04", "00:00", "01:45", ("Sat 03 13:00", "Sat 03 14:45")),
    ],
)
def test_on_days_on_which_clocks_change_a_time_is_the_first_instant_at_which_they_show_it_or_a_later_one(zone, day, begins, ends, span):
    day_of_week = datetime.fromisoformat(day).weekday()
    here = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
    found = spans(a_schedule((day_of_week,), begins, ends, zone), f"{here:%Y-%m-%dT%H:%M}", 1)
    if span:
        assert found == [span]
    else:  # nothing of it on that day: the next one is a week later
        assert found == [("Sun 04 00:10", "Sun 04 00:50")]


@given(
    zone=st.sampled_from([BERLIN, NEW_YORK, LORD_HOWE, "America/Santiago", "Africa/Cairo", "Asia/Kathmandu", "UTC"]),
    at=st.integers(int(utc("2026-06-01")), int(utc("2028-06-01"))),
    begin=st.integers(0, 1439),
    length=st.integers(1, 1439),
    days=st.sets(st.integers(0, 6), min_size=1),
)
def test_spans_begin_and_end_where_clocks_first_show_their_times_and_never_overlap(zone, at, begin, length, days):
    there = ZoneInfo(zone)
    schedule = PoolSchedule(days=frozenset(days), from_minute=begin, to_minute=begin + length, time_zone=there, min_agents=1)
    found = list(now_and_next(schedule, at))
    assert all(one.begins_at < one.ends_at <= other.begins_at for one, other in pairwise(found))
    for instant, minute in [(found[0].begins_at, begin), (found[0].ends_at, begin + length)]:
        now, before = (datetime.fromtimestamp(instant - seconds, there).replace(tzinfo=None) for seconds in (0, 1))
        days_since = [datetime.combine(now.date() - timedelta(days=n), datetime.min.time()) for n in (0, 1)]
        assert any(before < day + timedelta(minutes=minute) <= now for day in days_since)


def test_where_two_schedules_hold_the_later_one_has_the_last_word_key_by_key():
    day, noon = a_schedule(min_agents=4, warm_executors=8), a_schedule(begins="12:00", ends="13:00", min_agents=1)
    there = pool_at(a_pool(schedules=(day, noon)), utc("2027-01-15T11:30"))
    assert (there.min_agents, there.warm_executors) == (1, 8)
    assert pool_at(a_pool(schedules=(noon, day)), utc("2027-01-15T11:30")).min_agents == 4


def test_a_schedule_changes_what_it_names_and_nothing_else():
    night = a_schedule(begins="20:00", ends="06:00", max_agents=2, warm_pool=WARM)
    pool = a_pool(max_agents=10, min_agents=1, warm_executors=3, schedules=(night,))
    at_night, by_day = pool_at(pool, utc("2027-01-15T23:00")), pool_at(pool, utc("2027-01-15T12:00"))
    assert by_day == pool
    assert (at_night.min_agents, at_night.max_agents, at_night.warm_executors, at_night.warm_pool) == (1, 2, 3, WARM)


def test_a_schedule_may_switch_the_warm_pool_off():
    pool = a_pool(warm_pool=WARM, schedules=(a_schedule(warm_pool=False),))
    assert pool_at(pool, utc("2027-01-15T12:00")).warm_pool is None
    assert pool_at(pool, utc("2027-01-15T20:00")).warm_pool == WARM


def test_a_pool_at_its_widest_has_the_most_of_each_number_at_any_hour():
    pool = a_pool(max_agents=10, schedules=(a_schedule(min_agents=4), a_schedule(WEEKEND, max_agents=20, warm_pool=WARM)))
    widest = pool_at_its_widest(pool)
    assert (widest.min_agents, widest.max_agents, widest.warm_executors, widest.warm_pool) == (4, 20, 0, WARM)


def test_a_pool_without_schedules_is_the_same_pool():
    pool = a_pool()
    assert pool_at(pool, utc("2027-01-15T12:00")) is pool
