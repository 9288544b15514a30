"""Time-lines of fleets that are full: what is there only for what may come back makes room for what is there."""

from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory


def minutes_until(day, build):
    return next(minute for minute in range(600) if build.started_at is not None or not day.minutes(1))


def test_a_job_of_another_pool_does_not_wait_until_idle_agents_are_kept_no_longer():
    day = Day(in_memory(a_pool("cpu", idle_seconds=7200.0), a_pool("gpu"), max_agents=3))
    day.minutes(2).queue(3)
    day.minutes(18)
    assert (day.agents("cpu"), day.agents("gpu")) == (3, 0)
    [build] = day.queue(1, "gpu")
    assert minutes_until(day, build) < 10
    assert (day.agents("cpu"), day.agents("gpu"), day.failed) == (2, 1, 0)


def test_controllers_that_share_a_pool_take_turns():
    day = Day(in_memory(a_pool("cpu", max_agents=1, idle_seconds=7200.0, controllers=("main", "second"))))
    day.minutes(2).queue(1)
    day.minutes(18)
    assert day.agents() == 1
    build = day.world.controllers["second"].submit("job", "cpu", 600.0)
    assert minutes_until(day, build) < 10
    [back] = day.queue(1)
    assert minutes_until(day, back) < 20
    assert (day.agents(), day.failed) == (1, 0)
