"""Time-lines of builds that run for hours and whose machines are well: they wait for a lock, or for a person."""

import pytest

from autoscaler.domain.facts.plan import Cordon, Launch
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory

HOUR = 3600.0


def a_day(**facts):
    """The job has run often, for five minutes each."""
    given = {"max_agents": 20, "idle_seconds": 900.0, "queue_maturity_seconds": 0.0} | facts
    day = Day(in_memory(a_pool("cpu", **given))).minutes(3)
    for _ in range(6):
        day.jenkins.submit("e2e", "cpu", 300.0, kind=Kind.PIPELINE)
        day.minutes(10)
    return day


def blamed(day):
    return [step for step in day.done(Cordon) if step.reason == "far-overdue"]


def submit(day, hours, count=1, **facts):
    builds = [day.jenkins.submit("e2e", "cpu", hours * HOUR, kind=Kind.PIPELINE) for _ in range(count)]
    for build in builds:
        build.waits_for_input = facts.get("waits_for_input", False)
    return builds


@pytest.mark.parametrize("count", [2, 8])
def test_builds_that_wait_for_one_lock_make_no_machine_suspect(count):
    """Eight builds waited for one lock, and five machines were put in quarantine."""
    day = a_day()
    submit(day, 6, count)
    day.minutes(6 * 60)
    assert blamed(day) == []


def test_one_build_that_runs_for_ten_times_as_long_still_does():
    day = a_day()
    submit(day, 6)
    day.minutes(6 * 60)
    assert len(blamed(day)) == 1


def test_a_build_that_waits_for_input_makes_no_machine_suspect_and_costs_no_second_one():
    """It cost a second agent for 13 hours: its machine was blamed, and the agent that the next job got was kept beside it."""
    day = a_day()
    [build] = submit(day, 14, waits_for_input=True)
    agent_minutes = 0
    for minute in range(13 * 60):
        if minute == 180:
            other = day.jenkins.submit("other", "cpu", 120.0)
        day.minutes(1)
        agent_minutes += day.agents()
    assert blamed(day) == []
    assert build.ended is None
    assert other.ended is not None
    assert agent_minutes <= 13 * 60 + 4 * 20  # the other agent's boot, its build and its idle time; and what was foreseen


@pytest.mark.parametrize("waits_for_input", [True, False])
def test_no_agent_is_kept_for_a_build_on_an_agent_that_is_suspect(waits_for_input):
    day = a_day()
    submit(day, 14, waits_for_input=waits_for_input)
    day.minutes(180)
    day.jenkins.submit("other", "cpu", 120.0)
    day.minutes(60)
    assert day.agents() == 1
    launched = sum(step.count for step in day.done(Launch))
    day.minutes(8 * 60)
    assert (day.agents(), sum(step.count for step in day.done(Launch)) - launched) == (1, 0)


def test_time_in_quiet_mode_makes_no_machine_suspect():
    """A pipeline stands still in it."""
    day = a_day()
    submit(day, 9)
    day.minutes(10)
    day.jenkins.quiet_down()
    day.minutes(8 * 60)
    day.jenkins.cancel_quiet_down()
    day.minutes(30)
    assert blamed(day) == []
