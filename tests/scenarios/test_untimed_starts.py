"""Time-lines of pools of which few starts were timed: if they are no quicker than boots, the disks of many would cost money in vain."""

from dataclasses import replace

import pytest

from autoscaler.control import operate
from autoscaler.domain.facts.fleet import WarmPool
from support.builders import a_pool, an_offering
from support.timeline import Day
from support.warm import starts_proven
from support.worlds import in_memory

OFFERING = an_offering(usd_per_hour=3.0, volume_usd_per_hour=0.01)


def a_day(timed, **warm):
    """Five agents have worked, and are stopped after five idle minutes. ``timed``: starts that were."""
    warm_pool = WarmPool(**{"min_agents": 0, "max_agents": 5, "max_age_seconds": 168 * 3600.0} | warm)
    day = starts_proven(Day(in_memory(a_pool("cpu", offerings=(OFFERING,), idle_seconds=300.0, warm_pool=warm_pool))))
    memory = day.fleet.state.memory
    day.fleet.state.memory = replace(memory, starts={"cpu": memory.starts["cpu"][:timed]})
    day.minutes(1).queue(5, seconds=300.0)
    return day.minutes(40)


def stopped(day):
    return sum(instance.state == "stopped" for instance in day.world.alive())


@pytest.mark.parametrize(("timed", "most"), [(0, 3), (2, 3), (3, 5)])
def test_no_more_than_three_are_stopped_before_three_starts_were_timed(timed, most):
    assert stopped(a_day(timed)) == most


@pytest.mark.parametrize(("timed", "is_told"), [(2, True), (3, False)])
def test_why_says_that_no_more_are_stopped_before_three_starts_were_timed(timed, is_told):
    day = a_day(timed)
    told = operate.why(day.fleet.ports, day.fleet.fleet, day.fleet.invocation(), "cpu")
    assert any("no more than 3 are stopped until 3 starts were timed" in line for line in told) is is_told


def test_before_three_starts_were_timed_as_many_are_stopped_as_their_operator_wants():
    assert stopped(a_day(0, min_agents=4)) == 4
