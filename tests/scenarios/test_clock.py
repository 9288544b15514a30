"""Time-lines on which one invocation's clock is wrong: what it wrote is of a time that never was."""

import pytest

from autoscaler.domain.facts.fleet import Ceilings
from support.builders import a_pool
from support.remembered import tables
from support.timeline import MINUTE, Day
from support.worlds import in_memory


def a_day(ahead, **facts):
    """Ten agents are launched by an invocation whose clock is so far ahead."""
    day = Day(in_memory(a_pool("cpu", **({"max_agents": 40, "idle_seconds": 120.0, "queue_maturity_seconds": 0.0} | facts)))).minutes(3)
    day.queue(10, seconds=300.0)
    day.world.move_to(day.world.timeline.now + MINUTE)
    day.fleet.skew_seconds = ahead
    day.fleet.scale_up()
    day.fleet.skew_seconds = 0.0
    return day.minutes(20)


@pytest.mark.parametrize("ahead", [-900.0, 200.0, 500.0, 900.0, 7200.0])
def test_a_launch_by_a_wrong_clock_teaches_no_boot_that_there_cannot_have_been(ahead):
    boots = tables(a_day(ahead).fleet.state.memory).boots.get("cpu", ())
    assert [seconds for seconds in boots if not 0.0 < seconds <= 900.0] == []


@pytest.mark.parametrize(("jobs", "every", "idle"), [(8, 20, 120.0), (4, 10, 300.0)])
@pytest.mark.parametrize("ahead", [500.0, 900.0])
def test_and_no_later_pass_fails_or_goes_on_for_ever(ahead, jobs, every, idle):
    day = a_day(ahead, idle_seconds=idle)
    builds = []
    for _ in range(120 // every):
        builds += day.queue(jobs, seconds=300.0)
        day.minutes(every)
    assert [build for build in builds if build.ended is None] == []
    assert day.failed == 0


@pytest.mark.parametrize("ahead", [7200.0, 31 * 86_400.0])
def test_what_ec2_refused_while_a_clock_was_ahead_is_tried_again_within_minutes_once_it_is_right(ahead):
    """A refused launch was to be tried again in a month, and jobs waited for it for as long."""
    day = Day(in_memory(a_pool("cpu", queue_maturity_seconds=0.0))).minutes(3)
    day.world.ec2.refuse = "InvalidParameterValue", "of the template"
    day.fleet.skew_seconds = ahead
    [build] = day.queue(1, seconds=60.0)
    day.minutes(5)
    day.fleet.skew_seconds = 0.0
    day.world.ec2.refuse = None
    day.minutes(20)
    assert build.ended is not None


JANUARY_ENDS = 1_801_440_000.0  # 2027-02-01, UTC
LIMIT = 40.0


def at_the_end_of_january(**limits):
    """A quarter of an hour before February, in a fleet of $60 an hour at the most."""
    day = Day(in_memory(a_pool("cpu", max_agents=20, idle_seconds=300.0, queue_maturity_seconds=0.0), **limits)).minutes(2)
    day.world.move_to(JANUARY_ENDS - 6 * 3600.0)
    return day.minutes(2)


def jump(day, ahead, minutes):
    """The clock is wrong for so many minutes."""
    day.fleet.skew_seconds = ahead
    day.minutes(minutes)
    day.fleet.skew_seconds = 0.0


def keep_busy(day, minutes):
    for _ in range(minutes):
        day.queue(5, seconds=1200.0)
        day.minutes(1)


@pytest.mark.parametrize(("ahead", "minutes"), [(6 * 3600.0, 10), (31 * 86_400.0, 1)])
@pytest.mark.long
def test_a_month_goes_on_when_a_clock_that_was_ahead_of_its_end_is_right_again(ahead, minutes):
    day = at_the_end_of_january(max_usd_per_month=LIMIT)
    keep_busy(day, 60)
    spent = day.fleet.state.memory.month
    jump(day, ahead, minutes)
    assert day.fleet.state.memory.month.name != spent.name
    day.minutes(2)
    month = day.fleet.state.memory.month
    assert (month.name, month.usd >= spent.usd) == (spent.name, True)
    keep_busy(day, 120)
    # What was launched meanwhile has its builds to end: twenty agents of $3 an hour for twenty minutes.
    assert sum(day.fleet.state.memory.month.by_pool.values()) < LIMIT + 20.0
    assert day.agents() == 0


def test_nor_does_the_next_one_begin_at_nothing_when_its_turn_comes():
    day = at_the_end_of_january(max_usd_per_month=LIMIT)
    keep_busy(day, 10)
    jump(day, 6 * 3600.0, 30)
    day.minutes(2)
    [february] = day.fleet.state.memory.fleet.months
    assert february.usd > 0.0
    day.world.move_to(JANUARY_ENDS)
    day.minutes(2)
    assert day.fleet.state.memory.month.name == "2027-02"
    assert day.fleet.state.memory.month.usd >= february.usd
    assert [month.name for month in day.fleet.state.memory.fleet.months] == ["2027-01"]


def test_a_clock_that_was_behind_before_the_months_beginning_leaves_the_month_as_it_was():
    day = at_the_end_of_january(max_usd_per_month=LIMIT)
    day.world.move_to(JANUARY_ENDS)
    day.minutes(2)
    keep_busy(day, 30)
    spent = day.fleet.state.memory.month.usd
    jump(day, -86_400.0, 5)
    day.minutes(1)
    assert day.fleet.state.memory.month.usd >= spent


def test_a_day_goes_on_likewise():
    day = Day(in_memory(a_pool("cpu", max_agents=20, queue_maturity_seconds=0.0, ceilings=Ceilings(max_hours_per_day=100.0)))).minutes(2)
    day.world.move_to(JANUARY_ENDS - 6 * 3600.0)
    keep_busy(day, 30)
    hours = day.fleet.state.memory.fleet.day.hours["cpu"]
    jump(day, 6.5 * 3600.0, 3)
    day.minutes(1)
    assert day.fleet.state.memory.fleet.day.hours["cpu"] >= hours


@pytest.mark.parametrize("ahead", [2 * 3600.0, 40 * 86_400.0])
def test_an_hour_goes_on_when_a_clock_that_was_ahead_is_right_again(ahead):
    day = Day(in_memory(a_pool("cpu", max_agents=20, idle_seconds=60.0, queue_maturity_seconds=0.0), max_launches_per_hour=5)).minutes(2)
    day.queue(5, seconds=60.0)
    day.minutes(15)
    assert (len(day.world.ec2.instances), day.agents()) == (5, 0)
    jump(day, ahead, 5)
    day.queue(5, seconds=60.0)
    day.minutes(15)
    assert len(day.world.ec2.instances) == 5
    day.minutes(45)
    assert len(day.world.ec2.instances) == 10


def test_launches_by_a_clock_that_was_ahead_count_for_an_hour_and_no_longer():
    day = Day(in_memory(a_pool("cpu", max_agents=20, idle_seconds=60.0, queue_maturity_seconds=0.0), max_launches_per_hour=5)).minutes(2)
    day.queue(5, seconds=60.0)
    jump(day, 40 * 86_400.0, 2)
    day.minutes(15)
    assert (len(day.world.ec2.instances), day.agents()) == (5, 0)
    day.queue(5, seconds=60.0)
    day.minutes(15)
    assert len(day.world.ec2.instances) == 5
    day.minutes(60)
    assert len(day.world.ec2.instances) > 5
