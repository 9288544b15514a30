"""Schedules at any instant: they hold as a clock on the wall says, and agents are launched for them within what may be."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import assume, given
from hypothesis import strategies as st

from autoscaler.domain import decide
from autoscaler.domain.facts.fleet import PoolSchedule
from autoscaler.domain.facts.plan import Launch
from autoscaler.domain.facts.pools import WEEK_SECONDS, pool_at, pool_for_a_week
from support.builders import a_fleet, a_pool, a_snapshot, a_view

ZONES = [ZoneInfo(name) for name in ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Auckland")]
A_YEAR = st.integers(int(datetime(2027, 1, 1, tzinfo=UTC).timestamp()), int(datetime(2028, 1, 1, tzinfo=UTC).timestamp()))
BOOT, LOOK = 180.0, 60.0


@st.composite
def schedules(draw):
    begin = draw(st.integers(0, 1439))
    agents = st.integers(0, 6)
    low, high = sorted((draw(agents), draw(agents)))
    numbers = draw(
        st.sampled_from([{"min_agents": low}, {"max_agents": high}, {"min_agents": low, "max_agents": high}, {"warm_executors": low}])
    )
    return PoolSchedule(
        days=frozenset(draw(st.sets(st.integers(0, 6), min_size=1))),
        from_minute=begin,
        to_minute=begin + draw(st.one_of(st.integers(1, 1440 - begin), st.integers(1, 1439))),
        time_zone=draw(st.sampled_from(ZONES)),
        **numbers,
    )


def on_the_wall(schedule, at):
    """Whether it holds by what a clock on the wall shows; None within a day of a change of clocks."""
    there = datetime.fromtimestamp(at, schedule.time_zone)
    if len({(there + timedelta(days=days)).utcoffset() for days in (-2, -1, 0, 1, 2)}) > 1:
        return None
    minute, today = there.hour * 60 + there.minute, there.weekday()
    begun_today = today in schedule.days and schedule.from_minute <= minute < schedule.to_minute
    begun_yesterday = (today - 1) % 7 in schedule.days and minute + 1440 < schedule.to_minute
    return begun_today or begun_yesterday


@given(schedule=schedules(), at=A_YEAR)
def test_a_schedule_holds_as_a_clock_on_the_wall_says(schedule, at):
    expected = on_the_wall(schedule, at)
    assume(expected is not None)
    pool = a_pool(min_agents=7, max_agents=8, warm_executors=9, schedules=(schedule,))
    assert (pool_at(pool, at) != pool) == expected


@given(given=st.lists(schedules(), max_size=3), begin=A_YEAR, shares=st.lists(st.floats(0.0, 1.0), max_size=9))
def test_a_pool_for_a_week_is_the_pool_at_each_instant_of_it(given, begin, shares):
    pool = a_pool(min_agents=7, max_agents=8, warm_executors=9, schedules=tuple(given))
    changes = pool_for_a_week(pool, begin)
    edges = [at for at, _ in changes]
    assert (edges[0], edges) == (begin, sorted(set(edges)))
    for at in (*edges, *(begin + share * WEEK_SECONDS for share in shares)):
        assert [there for since_at, there in changes if since_at <= at][-1] == pool_at(pool, at)


@given(given=st.lists(schedules(), max_size=3), at=A_YEAR, more=st.integers(0, 3))
def test_agents_are_launched_for_what_holds_and_for_what_begins_within_a_boot_and_never_beyond_what_may_be(given, at, more):
    pool = a_pool(max_agents=3, min_agents=1, schedules=tuple(given), boot_seconds=BOOT)
    plan = decide.scale_up(a_snapshot(a_view(), taken_at=float(at)), a_fleet(pool, max_agents=2 + more))
    launched = sum(step.count for step in plan.steps if isinstance(step, Launch))
    now, soon = (pool_at(pool, at + seconds) for seconds in (0.0, BOOT + LOOK))
    least = max(now.min_agents, soon.min_agents, now.warm_executors, soon.warm_executors)  # an agent has one executor
    assert launched <= min(max(now.max_agents, soon.max_agents), 2 + more)
    assert launched <= max(now.max_agents, min(soon.max_agents, max(soon.min_agents, soon.warm_executors)))
    assert launched >= min(now.max_agents, least, 2 + more)
