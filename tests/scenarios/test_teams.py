"""Time-lines of teams that share a fleet which is too small for all of them: who gets the last agents, and whose limit stops whom."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.fleet import Ceilings, Team
from autoscaler.domain.facts.metering import month_name
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from support.builders import a_month, a_pool, an_offering
from support.remembered import with_tables
from support.timeline import Day
from support.worlds import in_memory

CHEAP = an_offering("c5.large", usd_per_hour=0.1)


def a_day(*pools, teams=(), **limits):
    """Pools of agents that are kept for two minutes only."""
    fleet = in_memory(*(replace(pool, idle_seconds=120.0, boot_seconds=60.0) for pool in pools), **limits)
    fleet.fleet = replace(fleet.fleet, teams={team.name: team for team in teams})
    return Day(fleet).minutes(1)


def team(name, *pools, weight=1.0, **limits):
    return Team(name=name, pools=frozenset(pools), weight=weight, ceilings=Ceilings(**limits))


GRAPHICS, WEB = team("graphics", "gpu"), team("web", "cpu")


def test_of_two_teams_that_want_the_last_agents_the_one_that_spent_less_gets_them():
    day = a_day(a_pool("gpu"), a_pool("cpu"), a_pool("old"), teams=(GRAPHICS, WEB), max_agents=4)
    day.queue(4, "gpu", seconds=1200.0)
    day.minutes(30)
    day.queue(4, "old", seconds=1800.0)
    day.minutes(10)
    assert (day.agents("gpu"), day.agents("old")) == (0, 4)
    graphics = day.queue(3, "gpu", seconds=1200.0)  # it waits for longer, and has spent more
    day.minutes(5)
    web = day.queue(3, "cpu", seconds=1200.0)
    day.minutes(25)
    assert (day.agents("gpu"), day.agents("cpu")) == (1, 3)
    assert all(build.started_at for build in web)
    day.minutes(60)
    assert {build.ended for build in (*graphics, *web)} == {Ended.FINISHED}


def keep_busy(day, minutes, label="gpu"):
    """Jobs of ten minutes, more than there are agents for, for ever: an agent that takes builds always has one."""
    for _ in range(minutes):
        day.queue(2, label, seconds=600.0)
        day.minutes(1)


def test_a_lane_of_higher_priority_never_starves_beside_a_queue_that_never_ends():
    day = a_day(a_pool("gpu"), a_pool("utility", priority=10), max_agents=3)
    keep_busy(day, 30)
    assert (day.agents("gpu"), day.agents("utility")) == (3, 0)
    [lifecycle] = day.queue(1, "utility", seconds=60.0)
    keep_busy(day, 20)
    assert lifecycle.ended is Ended.FINISHED
    keep_busy(day, 15)
    assert (day.agents("gpu"), day.agents("utility")) == (3, 0)
    assert {build.killed_by for build in day.jenkins.builds} == {""}


@pytest.mark.long
def test_a_team_that_comes_later_gets_its_share_beside_one_whose_queue_never_ends():
    day = a_day(a_pool("gpu"), a_pool("cpu"), teams=(GRAPHICS, WEB), max_agents=4)
    keep_busy(day, 30)
    assert day.agents("gpu") == 4
    for _ in range(60):
        day.queue(2, "cpu", seconds=600.0)
        keep_busy(day, 1)
    assert (day.agents("gpu"), day.agents("cpu")) == (2, 2)
    assert {build.killed_by for build in day.jenkins.builds} == {""}


def test_a_teams_limit_stops_that_team_while_others_launch_and_plan_and_status_say_whose_it_was():
    day = a_day(a_pool("gpu"), a_pool("cpu"), teams=(team("graphics", "gpu", max_usd_per_hour=6.0), WEB))
    day.queue(4, "gpu", seconds=3600.0)
    day.queue(4, "cpu", seconds=3600.0)
    day.minutes(10)
    assert (day.agents("gpu"), day.agents("cpu")) == (2, 4)
    day.fleet.scale_up()
    held = {(str(held.reason), held.limit_of) for held in day.fleet.reports[-1].plan.held}
    assert ("max-usd-per-hour", "team graphics") in held
    told = day.status()
    [graphics, _] = told.limits
    assert (graphics.whose, graphics.reserved_usd_per_hour, graphics.max_usd_per_hour) == ("team graphics", 6.0, 6.0)
    assert told.turns[0] == "team graphics"  # half as much was spent there


def test_a_teams_month_ends_at_its_limit_what_runs_is_finished_and_no_other_team_notices():
    day = a_day(a_pool("gpu"), a_pool("cpu"), teams=(team("graphics", "gpu", max_usd_per_month=50.0), WEB))
    gpu, cpu = day.queue(2, "gpu", seconds=3600.0), day.queue(2, "cpu", seconds=3600.0)
    day.minutes(10)
    state = day.fleet.state
    now = day.world.timeline.now
    month = a_month(name=month_name(now), usd=70.0, metered_at=now, by_pool={"gpu": 50.0, "cpu": 20.0})
    state.memory = replace(state.memory, month=month)
    later = day.queue(2, "gpu", seconds=600.0)
    day.minutes(70)
    assert {build.ended for build in (*gpu, *cpu)} == {Ended.FINISHED}
    assert (day.agents("gpu"), [build.started_at for build in later]) == (0, [None, None])
    day.queue(1, "cpu", seconds=600.0)
    day.minutes(6)
    assert day.agents("cpu") >= 1


def test_what_a_team_has_spent_is_known_after_the_state_was_read_by_an_earlier_version():
    """It knows the fleet's month alone: that goes on, and the teams' begins."""
    day = a_day(a_pool("gpu"), a_pool("cpu"), teams=(GRAPHICS, WEB))
    day.queue(1, "gpu", seconds=3600.0)
    day.minutes(10)
    memory = day.fleet.state.memory
    day.fleet.state.memory = with_tables(memory, month=replace(memory.month, usd=400.0, by_pool={}), lately=())
    day.minutes(20)
    month = day.fleet.state.memory.month
    assert month.usd > 400.9
    assert 0.9 < month.by_pool["gpu"] < 1.1
    assert len(day.fleet.state.memory.fleet.lately) == 2
