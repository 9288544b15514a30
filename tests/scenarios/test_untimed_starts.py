"""Time-lines of pools of which few starts were timed: if they are no quicker than boots, the disks of many would cost money in vain."""

import pytest

from autoscaler.domain.facts.fleet import WarmPool
from support.builders import a_pool, an_offering
from support.timeline import Day
from support.warm import starts_proven
from support.worlds import in_memory

BOOT_SECONDS = 180.0
OFFERING = an_offering(usd_per_hour=3.0, volume_usd_per_hour=0.01)


def a_day(timed, *, boots_share=0.1, agents=5, **warm):
    """Some agents have worked, and are stopped after five idle minutes. ``timed``: starts that were, each that share of a boot."""
    warm_pool = WarmPool(**{"min_agents": 0, "max_agents": agents, "max_age_seconds": 168 * 3600.0} | warm)
    pool = a_pool("cpu", max_agents=20, boot_seconds=BOOT_SECONDS, offerings=(OFFERING,), idle_seconds=300.0, warm_pool=warm_pool)
    day = starts_proven(Day(in_memory(pool)), timed=(boots_share * BOOT_SECONDS,) * timed)
    day.minutes(1).queue(agents, seconds=300.0)
    return day.minutes(40)


def stopped(day):
    return sum(instance.state == "stopped" for instance in day.world.alive())


@pytest.mark.parametrize(("timed", "most"), [(0, 3), (2, 3), (3, 5)])
def test_no_more_than_three_are_stopped_before_three_starts_were_timed(timed, most):
    assert stopped(a_day(timed)) == most


@pytest.mark.parametrize(("timed", "boots_share", "most"), [(3, 0.7, 10), (9, 0.7, 10), (10, 0.7, 12), (3, 0.5, 12)])
def test_if_the_first_starts_took_longer_than_believed_no_more_than_ten_are_stopped_before_ten_were_timed(timed, boots_share, most):
    assert stopped(a_day(timed, boots_share=boots_share, agents=12)) == most


@pytest.mark.parametrize(("timed", "boots_share", "starts"), [(2, 0.1, 3), (3, 0.1, None), (3, 0.7, 10), (10, 0.7, None)])
def test_why_says_that_no_more_are_stopped_before_enough_starts_were_timed(timed, boots_share, starts):
    day = a_day(timed, boots_share=boots_share, agents=12)
    told = day.why("cpu")
    lines = [line for line in told if "starts were timed" in line]
    assert lines == (
        [f"no more than {starts} are stopped until {starts} starts were timed: they may be as slow as boots"] if starts else []
    )


def test_before_three_starts_were_timed_as_many_are_stopped_as_their_operator_wants():
    assert stopped(a_day(0, min_agents=4)) == 4
