"""Time-lines of agents that stop: from that moment EC2 bills their disks alone, on every screen and in every limit."""

from dataclasses import replace

import pytest

from autoscaler.control import operate
from autoscaler.domain.facts.fleet import WarmPool
from autoscaler.domain.facts.plan import Start, Stop
from autoscaler_workbench.fakes.world.physics import CALM
from support.builders import a_pool, an_offering
from support.timeline import Day
from support.warm import starts_proven
from support.worlds import in_memory

HOUR = 3600.0
DISK = 0.01
WARM = WarmPool(min_agents=0, max_agents=5, max_age_seconds=168 * HOUR)


def a_day(**facts):
    """Stops take nine minutes."""
    pool = a_pool("cpu", offerings=(an_offering(usd_per_hour=3.0, volume_usd_per_hour=DISK),), idle_seconds=300.0, warm_pool=WARM)
    physics = replace(CALM, stop_from_seconds=540.0, stop_to_seconds=540.0)
    return Day(in_memory(pool, physics=physics, **facts)).minutes(2)


def until(day, state, most=60):
    for _ in range(most):
        if [instance.state for instance in day.world.alive()] == [state]:
            return day
        day.minutes(1)
    raise AssertionError([instance.state for instance in day.world.alive()])


def asked(day, question):
    return question(day.fleet.ports, day.fleet.fleet, day.fleet.invocation())


def test_what_stops_costs_its_disk_an_hour_wherever_a_person_looks():
    day = a_day()
    day.queue(1, seconds=300.0)
    until(day, "stopping").minutes(2)
    until(day, "stopping", most=1)
    status = asked(day, operate.status)
    assert (status.usd_per_hour, status.reserved_usd_per_hour) == (DISK, DISK)
    assert [pool.usd_per_hour for pool in status.pools] == [DISK]
    [agent] = asked(day, operate.agents)
    assert agent.usd_per_hour == DISK
    datums = [datum for _, datum in day.fleet.metrics.published if datum.name == "UsdPerHour"]
    assert datums[-1].values[0] == pytest.approx(DISK)


def test_what_stops_keeps_no_dollars_from_a_job_that_waits():
    day = a_day(max_usd_per_hour=5.0)
    day.queue(1, seconds=300.0)
    until(day, "stopping").minutes(1)
    [build] = day.queue(1, seconds=300.0)
    day.minutes(5)
    assert "stopping" in {instance.state for instance in day.world.alive()}
    assert build.started_at is not None


def test_what_starts_is_reserved_as_a_whole_before_ec2_shows_it():
    day = until_stopped(a_day(max_usd_per_hour=3.5))
    builds = day.queue(2, seconds=300.0)
    for _ in range(12):
        day.minutes(1)
        assert sum(instance.is_on() for instance in day.world.alive()) <= 1
    assert builds[0].started_at is not None


def until_stopped(day):
    day.queue(1, seconds=300.0)
    return until(day, "stopped").minutes(2)


@pytest.mark.parametrize(("start_share", "starts", "stops"), [(1.0, 3, 3), (0.3, 7, 8)])
def test_if_the_first_three_starts_are_as_slow_as_boots_agents_are_stopped_no_more(start_share, starts, stops):
    """A job every three hours. It took ten starts, and for as long agents were stopped sooner than they would have been terminated."""
    physics = replace(CALM, boot_from=1.0, boot_to=1.0, start_from=start_share, start_to=start_share)
    pool = a_pool("cpu", offerings=(an_offering(usd_per_hour=3.0, volume_usd_per_hour=DISK),), warm_pool=WARM)
    day = starts_proven(Day(in_memory(pool, physics=physics)), timed=())
    for _ in range(8):
        day.queue(1, seconds=300.0)
        day.minutes(60).hours(2)
    assert (len(day.done(Start)), len(day.done(Stop))) == (starts, stops)
