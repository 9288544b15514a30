"""Time-lines of warm pools whose agents EC2 does not stop: what cannot be stopped is terminated, and people are told why."""

import pytest

from autoscaler.domain.facts.fleet import WarmPool
from autoscaler.domain.facts.plan import Launch, Stop, Terminate
from autoscaler_workbench.fakes.world.faults import Fault
from support.builders import a_pool, an_offering
from support.timeline import Day
from support.worlds import in_memory

FOR_EVER = 10**9
HOUR = 3600.0


def a_day(**warm):
    """Three agents have had a build each, and are to be stopped."""
    kept = WarmPool(**({"min_agents": 0, "max_agents": 5, "max_age_seconds": 168 * HOUR} | warm))
    firm = an_offering(usd_per_hour=3.0, volume_usd_per_hour=0.01)
    return Day(in_memory(a_pool("cpu", offerings=(firm,), idle_seconds=300.0, warm_pool=kept, max_agents=5))).minutes(2)


def refuses(day, code, times=FOR_EVER, **how):
    day.fleet.faults.plan(Fault("ec2 StopInstances", status=400, code=code, times=times, **how))
    return day


def that_run(day):
    return sum(instance.is_on() for instance in day.world.alive())


def subjects(day):
    return [message.subject for message in day.fleet.notifier.sent]


@pytest.mark.parametrize("code", ["IncorrectInstanceState", "UnauthorizedOperation", "UnsupportedOperation", "SomethingNew"])
def test_what_ec2_refuses_to_stop_is_terminated_within_minutes_and_it_is_told_once_in_ec2s_own_word(code):
    day = refuses(a_day(), code)
    day.queue(3, seconds=300.0)
    day.minutes(40)
    assert (that_run(day), len(day.done(Terminate))) == (0, 3)
    [told] = day.fleet.notifier.sent
    assert told.subject == "[f] EC2 does not stop agents of cpu"
    assert code in told.text
    assert any(code in line for line in day.why("cpu"))
    day.minutes(6 * 60)
    assert subjects(day) == ["[f] EC2 does not stop agents of cpu"]


def test_no_agent_is_launched_again_and_again_to_be_stopped():
    day = refuses(a_day(min_agents=2), "IncorrectInstanceState").minutes(6 * 60)
    assert sum(step.count for step in day.done(Launch)) <= 4
    assert that_run(day) == 0


def test_what_was_refused_twice_and_then_not_is_stopped_as_if_nothing_had_been():
    day = refuses(a_day(), "IncorrectInstanceState", times=2)
    day.queue(1, seconds=300.0)
    day.minutes(40)
    assert (len(day.done(Stop)), day.done(Terminate), subjects(day)) == (1, [], [])


def test_it_is_over_once_a_stop_has_worked_and_not_before():
    day = refuses(a_day(), "UnauthorizedOperation", times=3)
    day.queue(1, seconds=300.0)
    day.minutes(60)
    assert subjects(day) == ["[f] EC2 does not stop agents of cpu"]
    day.queue(1, seconds=300.0)
    day.minutes(60)
    assert subjects(day) == ["[f] EC2 does not stop agents of cpu", "[f] over: EC2 does not stop agents of cpu"]
    assert day.done(Stop)


@pytest.mark.parametrize(("status", "code"), [(0, ""), (503, "Unavailable"), (503, "RequestLimitExceeded"), (400, "Throttling")])
def test_calls_that_are_throttled_or_not_answered_count_against_no_agent(status, code):
    """They say nothing about it, however many there were before EC2 refuses it once."""
    day = a_day()
    day.fleet.faults.plan(Fault("ec2 StopInstances", status=status, code=code, times=5))
    refuses(day, "IncorrectInstanceState", times=1)
    day.queue(1, seconds=300.0)
    day.minutes(40)
    assert (len(day.done(Stop)), subjects(day)) == (1, [])
