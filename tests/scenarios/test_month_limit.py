"""Time-lines of a month whose money is spent: nothing new starts anywhere, builds that run end, and all of it comes back by itself."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.fleet import AtMonthLimit
from autoscaler.domain.facts.orders import LaunchSome
from autoscaler.domain.facts.plan import Launch
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory

LIMIT = 100.0


def a_day(*, usd=LIMIT - 5.0, **facts):
    """Agents of $3 an hour, and a month of which so much is spent."""
    limits = {"max_usd_per_month": LIMIT} | {key: facts.pop(key) for key in ("at_month_limit",) if key in facts}
    day = Day(in_memory(a_pool("cpu", executors=2, idle_seconds=600.0, **facts), **limits)).minutes(1)
    spend(day, usd)
    return day


def spend(day, usd):
    state = day.fleet.state
    state.memory = replace(state.memory, month=replace(state.memory.month, usd=usd))


def spent(day):
    return day.fleet.state.memory.month.usd


def set_limit(day, usd):
    fleet = day.fleet.fleet
    day.fleet.fleet = replace(fleet, limits=replace(fleet.limits, max_usd_per_month=usd))


def keep_busy(day, minutes):
    """A job of half an hour each minute, for ever: agents in use are never idle by themselves."""
    for _ in range(minutes):
        day.queue(1, seconds=1800.0)
        day.minutes(1)


@pytest.mark.long
def test_the_month_ends_at_its_limit_and_what_runs_is_finished():
    day = a_day(min_agents=1)
    keep_busy(day, 60)
    assert day.agents() >= 1
    spend(day, LIMIT)
    began = [build for build in day.jenkins.builds if build.started_at is not None]
    keep_busy(day, 90)
    assert (day.agents(), day.nodes()) == (0, [])
    assert {build.ended for build in began} == {Ended.FINISHED}
    assert spent(day) < LIMIT + 2.0
    before = spent(day)
    keep_busy(day, 60)
    assert (day.agents(), spent(day)) == (0, before)


def test_a_build_whose_next_part_waits_for_its_own_node_gets_it_and_ends():
    day = a_day()
    outer = day.jenkins.submit("nested", "cpu", 3600.0, kind=Kind.PIPELINE)
    day.minutes(6)
    spend(day, LIMIT)
    day.minutes(3)
    [node] = day.nodes()
    assert day.jenkins.nodes[node].offline
    inner = day.jenkins.submit("nested", node, 300.0, kind=Kind.PIPELINE, number=outer.number)
    day.minutes(12)
    assert inner.ended is Ended.FINISHED
    assert day.jenkins.nodes[node].offline
    day.minutes(60)
    assert (outer.ended, day.agents()) == (Ended.FINISHED, 0)


def test_a_person_launches_nothing_beyond_it():
    day = a_day(usd=LIMIT)
    order = LaunchSome(pool="cpu", count=2, controller="main", keep_seconds=3600.0, reason="release day", request_id="r")
    [report] = day.order(order)
    assert report.results == ()
    assert "max-usd-per-month" in {str(held.reason) for held in report.plan.held}


def lift_by_the_limit(day):
    set_limit(day, 10 * LIMIT)


def lift_by_the_calendar(day):
    month = day.fleet.state.memory.month
    day.fleet.state.memory = replace(day.fleet.state.memory, month=replace(month, name="2026-12"))


def lift_by_the_setting(day):
    fleet = day.fleet.fleet
    day.fleet.fleet = replace(fleet, limits=replace(fleet.limits, at_month_limit=AtMonthLimit.LAUNCH_NOTHING))


@pytest.mark.parametrize("lift", [lift_by_the_limit, lift_by_the_calendar, lift_by_the_setting])
def test_agents_come_back_when_the_limit_holds_no_more_and_none_is_launched_beside_them(lift):
    day = a_day()
    [long] = day.queue(1, seconds=7200.0)
    day.minutes(6)
    spend(day, LIMIT)
    day.minutes(3)
    [node] = day.nodes()
    assert day.jenkins.nodes[node].offline
    [waits] = day.queue(1, seconds=60.0)
    day.minutes(5)
    assert waits.started_at is None
    lift(day)
    day.minutes(1)
    assert not day.jenkins.nodes[node].offline
    assert waits.node == node
    day.minutes(3)
    assert len(day.done(Launch)) == 1
    assert long.ended is None


def test_launching_nothing_more_leaves_agents_in_use_where_that_is_asked_for():
    day = a_day(at_month_limit=AtMonthLimit.LAUNCH_NOTHING)
    keep_busy(day, 10)
    there = day.agents()
    spend(day, LIMIT)
    keep_busy(day, 60)
    assert day.agents() == there
    assert spent(day) > LIMIT + 2.0


def test_a_machine_that_boots_when_the_limit_is_reached_takes_no_build():
    day = a_day()
    [build] = day.queue(1, seconds=3600.0)
    day.minutes(2)
    assert day.agents() == 1
    spend(day, LIMIT)
    day.minutes(30)
    assert (day.agents(), build.started_at) == (0, None)
    assert "boot/cpu" not in day.fleet.state.memory.trials


def test_an_agent_that_has_registered_when_the_limit_is_reached_takes_no_build():
    day = a_day()
    day.world.physics = replace(day.world.physics, connect_from_seconds=100.0, connect_to_seconds=100.0)
    [build] = day.queue(1, seconds=3600.0)
    while not day.nodes():
        day.minutes(1)
    spend(day, LIMIT)
    day.minutes(30)
    assert (day.agents(), day.nodes(), build.started_at) == (0, [], None)


def test_a_launch_that_was_never_answered_is_not_sent_again():
    day = a_day()
    day.fleet.faults.plan(Fault("ec2 CreateFleet", times=1))
    day.queue(1)
    day.minutes(1)
    assert day.fleet.state.intents
    spend(day, LIMIT)
    day.minutes(20)
    assert day.world.ec2.instances == {}
    assert day.fleet.state.intents == {}
