"""Time-lines of warm pools whose disks age, fill up, or do not outlive a stop: such agents are terminated, and others take their place."""

from dataclasses import replace

import pytest

from autoscaler.control import operate
from autoscaler.domain.facts.fleet import WarmPool
from autoscaler.domain.facts.orders import override_pool
from autoscaler.domain.facts.plan import Launch, Start, Stop, Stopped, Terminate
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.learn import note_results
from autoscaler.entry.function_url import read_telemetry
from autoscaler.entry.operations import read_operation
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from autoscaler_workbench.fakes.world.usage import GIB, Size, Usage
from support.builders import a_pool, an_offering
from support.timeline import Day
from support.worlds import in_memory

HOUR = 3600.0
MEMORY = {"seconds": 60.0, "samples": 4, "cores": 8.0, "memory_total": 16e9, "memory_available": 12e9}


def a_day(*types, **warm):
    kept = WarmPool(**({"min_agents": 0, "max_agents": 5, "max_age_seconds": 168 * HOUR} | warm))
    offered = tuple(an_offering(name, usd_per_hour=3.0, volume_usd_per_hour=0.01) for name in types or ("m7i.large",))
    return Day(in_memory(a_pool("cpu", offerings=offered, idle_seconds=120.0, warm_pool=kept, max_agents=5))).minutes(2)


def reports(day, free, **work):
    """Each machine that runs says how much of its 100 GB is free."""
    told = {"root_free": free, "root_total": 100e9} | work
    for instance in day.world.alive():
        if instance.is_on() and instance.booted_at:
            day.fleet.state.admit(instance.id, now=day.world.timeline.now, telemetry=read_telemetry(MEMORY | told))


def until_it_stands_still(day, free=None, **work):
    """Let a build run, and whatever follows it."""
    build = day.queue(1, seconds=120.0)[0]
    for _ in range(40):
        if free is not None:
            reports(day, free, **work)
        day.minutes(1)
        if build.ended_at and all(instance.state == "stopped" for instance in day.world.alive()):
            return build
    raise AssertionError([instance.state for instance in day.world.alive()])


def states(day):
    return [instance.state for instance in day.world.alive()]


def ends(day):
    return [(step.reason, step.detail) for step in day.done(Terminate)]


@pytest.mark.parametrize(
    "told",
    [
        {"free": 0.1e9},
        {"free": 9.9e9},
        {"free": 50e9, "work_free": 1e9, "work_total": 100e9},
    ],
)
def test_an_agent_with_less_than_a_tenth_of_a_disk_free_is_terminated_and_not_stopped(told):
    day = a_day()
    until_it_stands_still(day, **told)
    assert (states(day), len(day.done(Stop))) == ([], 0)
    [(reason, detail)] = ends(day)
    assert reason is Reason.SHORT_OF_DISK
    assert "less than a tenth of its disk free" in detail


def test_an_agent_with_a_tenth_free_or_one_that_reports_nothing_is_stopped():
    for free in (10.1e9, None):
        day = a_day()
        until_it_stands_still(day, free)
        assert (states(day), ends(day)) == (["stopped"], [])


def test_a_disk_that_has_been_cleaned_by_then_is_kept():
    day = a_day()
    day.queue(1, seconds=120.0)
    for _ in range(5):
        reports(day, 1e9)
        day.minutes(1)
    until_it_stands_still(day, 60e9)
    assert states(day) == ["stopped"]


def test_a_report_that_came_while_the_agent_stopped_counts_too():
    day = a_day()
    until_it_stands_still(day, 60e9)
    [instance] = day.world.alive()
    day.fleet.state.admit(
        instance.id, now=day.world.timeline.now, telemetry=read_telemetry(MEMORY | {"root_free": 1e9, "root_total": 100e9})
    )
    day.minutes(2)
    assert states(day) == []


def test_what_a_report_said_holds_when_reports_can_no_longer_be_read():
    day = a_day()
    day.queue(1, seconds=120.0)
    for _ in range(5):
        reports(day, 1e9)
        day.minutes(1)
    day.fleet.state.reports.clear()
    day.minutes(20)
    assert (states(day), len(day.done(Stop))) == ([], 0)


def test_a_disk_serves_until_it_has_seen_so_many_builds_in_all_lives():
    day = a_day(max_disk_builds=3)
    nodes = [until_it_stands_still(day).node for _ in range(4)]
    assert len(set(nodes[:3])) == 1
    assert nodes[3] != nodes[0]
    [(reason, detail)] = ends(day)
    assert (reason, "its disk has seen 3 builds" in detail) == (Reason.DISK_USED_UP, True)


def test_a_disk_that_gets_too_old_while_it_is_stopped_goes():
    day = a_day(max_disk_seconds=3 * HOUR, min_agents=1)
    day.minutes(15)
    [first] = day.world.alive()
    day.hours(2.6)
    assert states(day) == ["stopped"]
    day.hours(0.6)
    assert (ends(day)[0][0], states(day)) == (Reason.DISK_USED_UP, ["stopped"])
    assert not first.alive()


def test_an_agent_that_runs_when_its_disk_gets_too_old_ends_its_build_and_is_not_stopped():
    day = a_day(max_disk_seconds=1 * HOUR)
    [build] = day.queue(1, seconds=1.5 * HOUR)
    day.hours(2)
    assert (build.ended, states(day), day.done(Stop)) == (Ended.FINISHED, [], [])


def test_by_default_a_disk_serves_a_week_or_two_hundred_builds():
    warm = WarmPool(min_agents=0, max_agents=1, max_age_seconds=1.0)
    assert (warm.max_disk_seconds, warm.max_disk_builds, warm.instance_stores) == (7 * 24 * HOUR, 200, False)


def test_no_machine_is_launched_again_and_again_whose_disk_is_full_from_its_image():
    day = a_day(min_agents=1)
    day.world.usage = Usage(day.world.timeline, day.world.controllers, size=Size(disk=21 * GIB))
    day.hours(2.5)
    assert 3 <= sum(step.count for step in day.done(Launch)) <= 4
    assert any("in a row terminated for the lack of free disk space; none is launched" in line for line in day.why("cpu"))
    day.fleet.state.memory = note_results(day.fleet.state.memory, day.fleet.fleet, [Stopped(pool="cpu")], day.world.timeline.now)
    assert not any("lack of free disk space" in line for line in day.why("cpu"))


@pytest.mark.parametrize("name", ["m5d.4xlarge", "i3.large", "g5.xlarge", "d3.xlarge", "x2iedn.xlarge"])
def test_a_type_with_instance_stores_is_terminated_and_why_says_so(name):
    day = a_day(name)
    [build] = day.queue(1, seconds=300.0)
    day.minutes(6)
    assert any("instance stores" in line and name in line for line in day.why(build.node))
    day.minutes(14)
    assert (states(day), day.done(Stop)) == ([], [])
    assert any("never stopped" in line and name in line for line in day.why("cpu"))


def test_a_type_with_instance_stores_is_stopped_where_its_operator_says_so():
    day = a_day("m5d.4xlarge", instance_stores=True)
    until_it_stands_still(day)
    assert states(day) == ["stopped"]


def test_nothing_is_launched_to_be_stopped_that_never_is():
    day = a_day("m5d.4xlarge", min_agents=2).minutes(30)
    assert day.done(Launch) == []
    day = a_day("m5d.4xlarge", "m7i.large", min_agents=2).minutes(30)
    assert {instance.instance_type for instance in day.world.alive()} == {"m7i.large"}
    assert states(day) == ["stopped", "stopped"]
    assert {offering.instance_type for step in day.done(Launch) for offering in step.offerings} == {"m7i.large"}


def test_an_agent_of_such_a_type_that_was_stopped_before_goes():
    day = a_day("m5d.4xlarge", instance_stores=True)
    until_it_stands_still(day)
    pool = day.fleet.fleet.pools["cpu"]
    day.fleet.fleet = _without_stores(day.fleet.fleet, pool)
    day.minutes(2)
    assert (states(day), ends(day)[0][0], day.done(Start)) == ([], Reason.INSTANCE_STORE, [])


def _without_stores(fleet, pool):
    warm = replace(pool.warm_pool, instance_stores=False)
    return replace(fleet, pools={**fleet.pools, "cpu": replace(pool, warm_pool=warm)})


def test_one_command_empties_a_warm_pool_and_keeps_it_empty():
    day = a_day(min_agents=1)
    until_it_stands_still(day)
    assert "stopped" in states(day)
    order = {"action": "set", "pool": "cpu", "max_stopped": 0, "minutes": 600, "by": "ada", "reason": "an older release comes back"}
    new = read_operation(order).order(day.fleet.fleet, day.world.timeline.now)
    operate.change(day.fleet.ports, day.fleet.invocation(), lambda known: override_pool(known, new))
    day.minutes(4)
    assert (states(day), day.status().pools[0].off) == ([], None)
    day.queue(1, seconds=120.0)
    day.minutes(25)
    assert (states(day), len(day.done(Launch))) == ([], 2)
