"""Time-lines of pools whose agents do not boot: what is tried meanwhile, how often, and what ends it."""

import pytest

from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from support.builders import a_pool
from support.timeline import MINUTE, Day
from support.worlds import in_memory

BOOT_TIMEOUT_MINUTES = 15


def a_day(**facts):
    given = {"max_agents": 10, "idle_seconds": 900.0, "queue_maturity_seconds": 0.0, "boot_timeout_seconds": 60.0 * BOOT_TIMEOUT_MINUTES}
    return Day(in_memory(a_pool("cpu", **(given | facts)))).minutes(3)


def launched(day):
    return len(day.world.ec2.instances)


def never_connects(day):
    """What boots from now on registers, and never connects. Returns how to mend it."""
    connect, bad = day.jenkins.connect, set()
    day.jenkins.connect = bad.add

    def mend():
        day.jenkins.connect = lambda name: None if name in bad else connect(name)

    return mend


def never_registers(day):
    """What boots from now on asks nobody who it is. Returns how to mend it."""
    comes_up = day.world.ec2.on_running
    day.world.ec2.on_running = lambda _instance: None

    def mend():
        day.world.ec2.on_running = comes_up

    return mend


@pytest.mark.parametrize("fault", [never_connects, never_registers])
def test_a_pool_that_was_broken_for_hours_serves_within_four_boot_timeouts_of_its_cure(fault):
    """The breaker's pause had grown to an hour, and an agent that never connected was waited for without end."""
    day = a_day()
    mend = fault(day)
    builds = day.queue(2)
    day.minutes(150)
    mend()
    day.minutes(4 * BOOT_TIMEOUT_MINUTES)
    assert all(build.started_at for build in builds)
    day.minutes(60)
    assert [build.ended for build in builds] == [Ended.FINISHED] * 2


@pytest.mark.parametrize("fault", [never_connects, never_registers])
def test_the_first_boots_that_fail_together_are_one_failure_and_the_next_launch_is_a_single_agent(fault):
    day = a_day()
    fault(day)
    day.queue(6)
    day.minutes(BOOT_TIMEOUT_MINUTES + 8)
    assert launched(day) == 6 + 1
    assert day.fleet.state.memory.trials["boot/cpu"].failures == 1
    day.minutes(6 * 60)
    assert launched(day) <= 6 + 4 + 6 * 3


def test_one_machine_that_does_not_come_up_beside_others_that_do_makes_nothing_wait():
    day = a_day()
    comes_up, bad = day.world.ec2.on_running, []

    def all_but_the_first(instance):
        if bad:
            comes_up(instance)
        else:
            bad.append(instance)

    day.world.ec2.on_running = all_but_the_first
    day.queue(4, seconds=7200.0)
    day.minutes(BOOT_TIMEOUT_MINUTES + 6)
    assert not bad[0].alive()
    builds = day.queue(5, seconds=600.0)
    day.minutes(8)
    assert max((build.started_at or day.world.timeline.now) - build.queued_at for build in builds) <= 7 * MINUTE


def test_two_launches_within_a_minute_that_fail_count_once():
    day = a_day()
    never_registers(day)
    day.queue(1)
    day.minutes(1)
    day.queue(3)
    day.minutes(BOOT_TIMEOUT_MINUTES + 4)
    assert day.fleet.state.memory.trials["boot/cpu"].failures == 1


def test_machines_that_are_lost_together_hold_no_places_for_another_boot_timeout():
    """The first loss gave all of them twice the time: seven of ten were booting again, and nothing could be launched in their place."""
    day = a_day()
    never_registers(day)
    day.queue(10)
    day.minutes(BOOT_TIMEOUT_MINUTES + 8)
    first = list(day.world.ec2.instances.values())[:10]
    assert [instance for instance in first if instance.alive()] == []


def test_what_is_launched_after_boots_were_lost_at_their_deadline_has_twice_the_time():
    day = a_day()
    real = day.world.ec2.on_running
    day.world.ec2.on_running = lambda instance: day.world.timeline.after((BOOT_TIMEOUT_MINUTES + 3) * MINUTE, lambda: real(instance))
    builds = day.queue(10, seconds=600.0)
    day.minutes(90)
    assert all(build.started_at for build in builds)
