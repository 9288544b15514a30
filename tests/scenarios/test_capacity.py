"""Time-lines of machines that cannot be had: what is learned of it, and how long agents are kept since."""

import pytest

from autoscaler_workbench.fakes.world.faults import Fault
from support.builders import a_pool
from support.remembered import tables
from support.timeline import Day
from support.worlds import in_memory


def a_day(**facts):
    return Day(in_memory(a_pool("cpu", **facts)))


def short(day, minutes):
    """Let a job come while machines are short for so long."""
    [offering] = day.fleet.fleet.pools["cpu"].offerings
    day.world.ec2.capacity[offering.key] = 0
    day.queue(1, seconds=60.0)
    day.minutes(minutes)
    day.world.ec2.capacity.clear()


def learned(day):
    return tables(day.fleet.state.memory).capacity_delays["cpu"]


def minutes_kept(day):
    """How long the agent of a job of a minute lives."""
    while not day.agents():
        day.minutes(1)
    return next(minute for minute in range(1000) if not day.minutes(1).agents())


def test_an_hour_without_machines_is_one_ask_that_took_an_hour():
    day = a_day()
    short(day.minutes(2), 60)
    day.minutes(5)
    assert day.agents() == 1
    assert learned(day).asks == 1.0
    assert learned(day).seconds == pytest.approx(3600, abs=180)


def test_a_launch_that_gets_what_it_asks_for_is_an_ask_that_took_no_time():
    day = a_day()
    day.minutes(2).queue(1)
    day.minutes(3)
    assert (learned(day).asks, learned(day).seconds) == (1.0, 0.0)


def test_what_is_had_in_part_was_had():
    day = a_day()
    [offering] = day.fleet.fleet.pools["cpu"].offerings
    day.world.ec2.capacity[offering.key] = 1
    day.minutes(2).queue(3)
    day.minutes(2)
    assert day.agents() == 1
    assert learned(day).asks == 1.0


def test_a_refusal_that_says_nothing_of_machines_is_no_shortage():
    day = a_day()
    day.fleet.faults.plan(Fault("ec2 CreateFleet", status=403, code="UnauthorizedOperation"))
    day.minutes(2).queue(1)
    day.minutes(2)
    assert "cpu" not in tables(day.fleet.state.memory).capacity_delays


def test_an_agent_that_was_hard_to_get_is_kept_for_longer():
    easy, hard = a_day(), a_day()
    easy.minutes(2).queue(1, seconds=60.0)
    short(hard.minutes(2), 60)
    assert minutes_kept(hard) > minutes_kept(easy)
