"""Time-lines on which one invocation's clock is wrong: what it wrote is of a time that never was."""

import pytest

from support.builders import a_pool
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
    boots = a_day(ahead).fleet.state.memory.boots.get("cpu", ())
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
