"""Time-lines of looks that come minutes apart, since other functions use up the account's concurrency."""

import pytest

from autoscaler_workbench.fakes.world.jenkins.nodes import Node
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory

IDLE_SECONDS = 600.0
POOL = {"idle_seconds": IDLE_SECONDS, "max_agents": 6, "queue_maturity_seconds": 0.0}


def a_day(**pool):
    return Day(in_memory(a_pool("cpu", **(POOL | pool)))).minutes(3)


def look_each(day, minutes, hours):
    """Let the functions run once in so many minutes."""
    for _ in range(int(hours * 60 / minutes)):
        day.world.move_to(day.world.timeline.now + (minutes - 1) * 60.0)
        day.minutes(1)


@pytest.mark.parametrize("minutes", [4, 5, 10, 15, 30])
def test_idle_agents_end_within_a_few_looks_of_their_idle_time(minutes):
    day = a_day()
    builds = day.queue(3, seconds=300.0)
    day.minutes(15)
    look_each(day, minutes, hours=(IDLE_SECONDS + 5 * minutes * 60) / 3600)
    assert all(build.ended == "finished" for build in builds)
    assert day.world.alive() == []


@pytest.mark.parametrize("minutes", [4, 10, 30])
def test_an_agent_that_worked_in_the_last_look_is_kept_for_its_idle_time(minutes):
    day = a_day(idle_seconds=3600.0)
    day.queue(1, seconds=1800.0)
    look_each(day, minutes, hours=1.2)
    assert len(day.world.alive()) == 1


@pytest.mark.parametrize("minutes", [4, 10, 30])
def test_where_agents_end_at_once_no_build_is_killed_and_all_jobs_are_served(minutes):
    day = a_day(idle_seconds=0.0)
    builds = []
    for _ in range(6):
        builds += day.queue(2, seconds=1500.0)
        look_each(day, minutes, hours=1)
    look_each(day, minutes, hours=3)
    assert [build for build in builds if build.killed_by] == []
    assert {str(build.ended) for build in builds} == {"finished"}


@pytest.mark.parametrize("minutes", [4, 10])
def test_a_machine_whose_node_a_person_deleted_ends(minutes):
    day = a_day(min_agents=1)
    day.minutes(10)
    [name] = day.nodes()
    [first] = day.world.alive()
    day.jenkins.delete_node(name)
    look_each(day, minutes, hours=1)
    assert first not in day.world.alive()
    assert isinstance(day.jenkins.nodes[day.nodes()[0]], Node)


def subjects(day):
    return [message.subject for message in day.fleet.notifier.sent]


@pytest.mark.parametrize("minutes", [4, 10, 30])
def test_late_looks_are_told_once_with_what_idle_agents_cost_and_are_over_once_they_come_again(minutes):
    day = a_day(min_agents=1, max_agents=1)
    look_each(day, minutes, hours=2)
    [message] = day.fleet.notifier.sent
    assert message.subject == "[f] looks come late"
    assert f"up to {minutes} min apart" in message.text
    assert "1 agent idle, $" in message.text
    day.minutes(121)
    assert subjects(day) == ["[f] looks come late", "[f] over: looks come late"]


def test_one_outage_of_an_hour_is_no_late_look():
    day = a_day(min_agents=1, max_agents=1)
    look_each(day, 60, hours=1)
    day.minutes(30)
    assert [subject for subject in subjects(day) if "late" in subject] == []


@pytest.mark.parametrize("minutes", [4, 5, 12])
def test_jobs_that_a_limit_keeps_waiting_while_looks_come_late_are_told_of_the_limit(minutes):
    day = a_day(max_agents=1)
    day.queue(3, seconds=4 * 3600.0)
    look_each(day, minutes, hours=2)
    assert [subject for subject in subjects(day) if "wait" in subject] == ["[f] jobs on main wait: max-agents of cpu"]


def test_one_look_without_memory_is_no_sign_that_no_pass_is_completed():
    day = a_day(max_agents=1)
    day.queue(3, seconds=4 * 3600.0)
    day.minutes(60)
    state = day.fleet.state
    state.memory = type(state.memory)(version=state.memory.version)
    day.minutes(30)
    assert [subject for subject in subjects(day) if "no pass" in subject] == []
