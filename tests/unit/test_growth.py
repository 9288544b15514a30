"""Bursts grow as those before them did: agents are launched for jobs that are likely to come before the first ones have theirs."""

import pytest

from autoscaler.domain.facts.memory import Burst, Growth
from autoscaler.domain.facts.plan import CreateBeacon, Launch, Uncordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.learn import assess
from autoscaler.domain.situation.bets import TrialOf
from support.builders import (
    NOW,
    a_fleet,
    a_memory,
    a_pool,
    a_snapshot,
    a_trial,
    a_view,
    a_window,
    an_agent,
    an_empty_window,
    an_item,
    cordoned,
)
from support.decisions import scale_down, scale_up
from support.remembered import tables

BOOT = 180.0
# Dollars an hour: a job's waiting 20, an agent 3. In vain it is paid for its boot, for a look, and for what Jenkins takes to settle.
GREW, CAME_TO_NOTHING = Growth(steps=((0.0, 1), (60.0, 3))), Growth(steps=((0.0, 1),))


def a_burst(*rises):
    """A burst that nothing was needed before; ``rises``: (seconds ago, executors)."""
    return Burst(peaks=((NOW - 300, 0),), rises=tuple((NOW - ago, beyond, float(beyond)) for ago, beyond in rises))


def foreseen(*growths, waiting=1, most=0, burst=None, **pool):
    """Executors that are foreseen in the pool when so many items wait. ``most``: agents that were needed a look ago."""
    items = tuple(an_item(number, label="cpu") for number in range(1, waiting + 1))
    memory = a_memory(windows=an_empty_window(most=most, burst=burst), growths={"main/cpu": growths})
    situation = assess(a_snapshot(a_view(items=items), memory=memory), a_fleet(a_pool(**pool)))
    return {name: due.executors for name, due in situation.forecasts("main").items()}


def test_nothing_is_foreseen_of_a_burst_before_one_was_seen():
    assert foreseen() == {}


def test_who_sees_the_first_job_of_a_burst_foresees_those_that_came_later_before():
    assert foreseen(GREW, GREW, GREW) == {"cpu": 2}


def test_without_a_burst_nothing_is_foreseen():
    assert foreseen(GREW, GREW, GREW, waiting=0) == {}


def test_they_are_launched_with_those_that_are_needed():
    memory = a_memory(windows=an_empty_window(), growths={"main/cpu": (GREW, GREW, GREW)})
    plan = scale_up(a_snapshot(a_view(items=(an_item(label="cpu"),)), memory=memory), a_fleet(a_pool()))
    [launch] = [step for step in plan.steps if isinstance(step, Launch)]
    assert (launch.count, launch.reason) == (3, Reason.NOBODY_CAN_SERVE)


@pytest.mark.parametrize(
    ("pool", "limits", "launched"),
    [
        ({"max_agents": 3}, {}, 3),
        ({}, {"max_agents": 6}, 3),
        ({}, {"max_agents": 5}, 2),
        ({}, {"max_launches_per_hour": 4}, 2),
        ({}, {"max_usd_per_hour": 15.0}, 2),
        ({}, {"max_agents": 3}, 1),
    ],
    ids=str,
)
def test_half_of_what_pools_share_is_left_to_jobs_that_wait(pool, limits, launched):
    """One agent for the job that waits, which may take all there is, and two for those that are to come. A pool's own limit is its own."""
    memory = a_memory(windows=an_empty_window(), growths={"main/cpu": (GREW, GREW, GREW)})
    plan = scale_up(a_snapshot(a_view(items=(an_item(label="cpu"),)), memory=memory), a_fleet(a_pool(**pool), **limits))
    [launch] = [step for step in plan.steps if isinstance(step, Launch)]
    assert launch.count == launched


def test_an_agent_that_retires_comes_back_for_what_is_to_come_however_near_the_limits_are():
    """It is there already."""
    record, node = an_agent()
    memory = a_memory(windows=an_empty_window(burst=a_burst((20, 1))), growths={"main/cpu": (GREW, GREW, GREW)})
    plan = scale_up(a_snapshot(a_view(cordoned(node)), records=(record,), memory=memory), a_fleet(a_pool(), max_agents=1))
    assert [type(step) for step in plan.steps if not isinstance(step, CreateBeacon)] == [Uncordon]


def test_the_plan_says_where_nothing_is_offered_for_what_is_to_come():
    short = {TrialOf.OFFERING.scope("cpu", offering.key): a_trial() for offering in a_pool().offerings}
    memory = a_memory(windows=an_empty_window(burst=a_burst((20, 1))), growths={"main/cpu": (GREW, GREW, GREW)}, trials=short)
    plan = scale_up(a_snapshot(a_view(), memory=memory), a_fleet(a_pool()))
    assert [held.reason for held in plan.held] == [Reason.NO_OFFERING]


def test_the_plan_says_what_was_foreseen():
    agents = a_memory(windows=an_empty_window(burst=a_burst((20, 1))), growths={"main/cpu": (GREW, GREW, GREW)})
    plan = scale_up(a_snapshot(a_view(), memory=agents), a_fleet(a_pool()))
    [launch] = [step for step in plan.steps if isinstance(step, Launch)]
    assert (launch.reason, launch.detail) == (Reason.FORESEEN, "2 executors for what is to come: bursts like this one grew")


def test_jobs_that_come_all_but_at_once_are_not_launched_for_before():
    """Waiting five seconds for each to come costs less than being wrong one time in four."""
    soon = Growth(steps=((0.0, 1), (5.0, 3)))
    assert foreseen(soon, soon, soon) == {}


@pytest.mark.parametrize(("grew", "came_to_nothing", "executors"), [(3, 2, {"cpu": 2}), (3, 4, {}), (30, 40, {"cpu": 2}), (30, 50, {})])
def test_what_comes_too_seldom_is_not_launched_for(grew, came_to_nothing, executors):
    """Early each is paid for a minute, in vain for 245 s, as one more is taken to be; the minute of waiting is worth 400 s of an agent."""
    assert foreseen(*[GREW] * grew, *[CAME_TO_NOTHING] * came_to_nothing) == executors


def test_the_dearer_waiting_the_more_is_launched_for():
    seldom = [GREW] * 3 + [CAME_TO_NOTHING] * 4
    assert [foreseen(*seldom, wait_usd_per_hour=usd) for usd in (20, 60)] == [{}, {"cpu": 2}]


def test_a_burst_that_has_stayed_as_it_is_for_longer_than_others_did_will_not_grow_as_they_did():
    burst = a_burst((90, 1))
    assert foreseen(GREW, GREW, GREW, burst=burst) == {}
    assert foreseen(GREW, GREW, GREW, burst=a_burst((30, 1))) == {"cpu": 2}


def test_it_may_grow_yet_as_slow_ones_did_however_many_were_quicker():
    slow = Growth(steps=((0.0, 1), (150.0, 3)))
    assert foreseen(*[GREW] * 6, *[slow] * 3, burst=a_burst((90, 1))) == {"cpu": 2}


def test_only_bursts_that_were_as_large_tell_how_this_one_goes_on():
    assert foreseen(GREW, GREW, GREW, waiting=3) == {}
    larger = Growth(steps=((0.0, 3), (60.0, 7)))
    assert foreseen(GREW, larger, larger, larger, waiting=3) == {"cpu": 4}


def test_a_burst_that_an_agent_would_be_too_late_for_is_over():
    assert foreseen(GREW, GREW, GREW, most=1, burst=a_burst((BOOT, 1))) == {}
    assert foreseen(GREW, GREW, GREW, most=1, burst=a_burst((30, 1))) == {"cpu": 2}


def test_the_first_agent_has_room_for_some_of_what_is_to_come():
    assert foreseen(GREW, GREW, GREW, executors=4) == {}
    larger = Growth(steps=((0.0, 1), (60.0, 8)))
    assert foreseen(larger, larger, executors=4) == {"cpu": 7}


def test_jobs_that_are_awaited_by_name_are_not_awaited_twice():
    """A stage that is due is needed already: of the burst as it is with it, no more is to come."""
    stages = Growth(steps=((0.0, 3),))
    assert foreseen(stages, stages, stages, waiting=3) == {}


def watched(burst, *growths):
    windows = {"main/cpu": a_window(peaks=((NOW - 300, 3),), burst=burst)}
    memory = a_memory(windows=windows, growths={"main/cpu": growths} if growths else {})
    plan = scale_down(a_snapshot(a_view(), memory=memory), a_fleet(a_pool()))
    return tables(plan.memory).growths


def test_how_a_burst_grew_is_remembered_when_it_is_over():
    assert watched(a_burst((BOOT + 20, 1), (BOOT - 40, 3))) == {"main/cpu": (GREW,)}
    assert watched(a_burst((BOOT - 20, 1), (BOOT - 40, 3))) == {}


def test_the_last_sixty_bursts_are_remembered():
    [kept] = watched(a_burst((BOOT + 20, 1), (BOOT - 40, 3)), *[CAME_TO_NOTHING] * 60).values()
    assert (len(kept), kept[-1]) == (60, GREW)
