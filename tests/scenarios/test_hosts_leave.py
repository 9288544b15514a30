"""Time-lines of hosts that are taken from the fleet file: each is drained, or its node and its record are removed if it is off."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.fleet import Quarantine, Share
from autoscaler.domain.facts.memory import Memory
from autoscaler.domain.facts.orders import DrainNodes
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Stopper
from support.builders import a_host, a_pool, a_pool_of_hosts, an_offering
from support.left_keys import deploy
from support.timeline import Day
from support.worlds import a_world_node, in_memory

TWO = ("main", "other")


def a_day(*pools, hosts=None, **facts):
    day = Day(in_memory(*(pools or (a_pool_of_hosts(**facts),)), hosts=hosts or (a_host(),)))
    return day.minutes(6)


def take_out(day, *hosts):
    """Deploy the fleet file without its hosts, but for those that are given; a pool of hosts has none left then."""
    deploy(day.fleet, replace(day.fleet.fleet, hosts={host.name: host for host in hosts}))
    return day


def nodes(day):
    return [name for controller in day.world.controllers.values() for name in controller.nodes if not name.startswith("autoscaler-beacon")]


def records(day):
    return [record.instance_id for record in day.fleet.state.read().records]


def assert_nothing_is_left(day):
    assert (nodes(day), records(day), day.failed) == ([], [], 0)
    assert [build for controller in day.world.controllers.values() for build in controller.builds if build.killed_by] == []


def power_fails(day):
    day.fleet.agents.power_fails(day.world.hosts["rocm-1"])
    return day


def drain(day):
    order = DrainNodes(nodes=("rocm-1",), reason="new fans", request_id=None)
    day.order(order)


STATES = {
    "idle": lambda day: day,
    "off": lambda day: power_fails(day).minutes(20),
    "off since a moment ago": power_fails,
    "drained by a person": drain,
    "drained by a person, and off": lambda day: (drain(day), power_fails(day.minutes(5)).minutes(20)),
    "quarantined": lambda day: day.jenkins.set_offline("rocm-1", "autoscaler:f:quarantine:p", "autoscaler"),
    "no node": lambda day: (power_fails(day), day.minutes(3).jenkins.delete_node("rocm-1")),
    "state table lost": lambda day: (power_fails(day), day.minutes(5).fleet.state.records.clear()),
    "state table lost while it is connected": lambda day: day.fleet.state.records.clear(),
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("share", [Share.NONE, Share.ROTATE, Share.COOPERATIVE])
def test_the_last_host_of_a_pool_leaves_nothing_in_whatever_state_it_is(state, share):
    day = a_day(share=share, controllers=TWO if share is not Share.NONE else ("main",), quarantine=Quarantine.KEEP)
    STATES[state](day)
    take_out(day).minutes(90 if "lost" in state else 40)
    assert_nothing_is_left(day)


def test_a_host_that_is_off_and_leaves_comes_back_for_no_job_that_waits():
    day = power_fails(a_day()).minutes(2)
    day.queue(1, label="rocm")
    take_out(day.minutes(3)).minutes(40)
    assert_nothing_is_left(day)


def test_the_build_of_the_last_host_of_a_pool_ends_first():
    day = a_day()
    [build] = day.queue(1, label="rocm", seconds=1800.0)
    take_out(day.minutes(3)).minutes(10)
    assert (build.ended, day.jenkins.nodes["rocm-1"].temporarily_offline) == (None, True)
    day.minutes(40)
    assert build.ended is Ended.FINISHED
    assert_nothing_is_left(day)


def test_one_that_never_connected_leaves_no_record():
    day = Day(in_memory(a_pool_of_hosts(), hosts=(a_host(),)))
    day.jenkins.add_node(a_world_node("rocm-1", "x", description="Anna's box", connected=False))
    day.minutes(6)
    assert records(day) == ["host-rocm-1"]
    take_out(day).minutes(40)
    assert (records(day), day.jenkins.nodes["rocm-1"].description) == ([], "Anna's box")


def test_one_that_a_person_took_offline_is_named_and_goes_with_its_node():
    day = a_day()
    day.jenkins.set_offline("rocm-1", "new fans", "anna")
    take_out(power_fails(day)).minutes(40)
    assert nodes(day) == ["rocm-1"]
    told = day.why("rocm-1")
    assert any("no host of pool rocm" in line for line in told), told
    assert any("new fans" in line for line in told), told
    [left] = day.status().left
    becomes = "taken offline by anna: 'new fans'; it stays until somebody brings it online, or deletes its node"
    assert left == f"rocm-1 (host-rocm-1): host-rocm-1 is no host of pool rocm in the fleet file: {becomes}"
    day.jenkins.delete_node("rocm-1")
    day.minutes(15)
    assert_nothing_is_left(day)


def test_one_that_a_job_waits_for_by_its_name_is_named_until_the_job_leaves():
    day = power_fails(a_day()).minutes(10)
    [job] = day.queue(1, label="rocm-1")
    take_out(day.minutes(3)).minutes(30)
    told = day.why("rocm-1")
    assert nodes(day) == ["rocm-1"]
    assert any("no host of pool rocm" in line for line in told), told
    day.jenkins.abort(job, Stopper.PERSON)
    day.minutes(30)
    assert_nothing_is_left(day)


@pytest.mark.parametrize("share", [Share.ROTATE, Share.COOPERATIVE])
def test_a_host_comes_back_as_new_when_it_is_put_back(share):
    day = a_day(share=share, controllers=TWO)
    take_out(power_fails(day)).minutes(40)
    assert_nothing_is_left(day)
    take_out(day, a_host()).fleet.agents.power_returns(day.world.hosts["rocm-1"])
    [build] = day.minutes(5).queue(1, label="rocm", seconds=60.0)
    day.minutes(8)
    assert build.ended is Ended.FINISHED


def test_the_instances_of_a_pool_that_hosts_take_over_are_drained():
    day = Day(in_memory(a_pool("rocm", min_agents=2, offerings=(an_offering(usd_per_hour=3.0),)), hosts=())).minutes(2)
    day.hours(3)
    assert day.agents() == 2
    [build] = day.queue(1, label="rocm", seconds=900.0)
    day.minutes(3)
    deploy(day.fleet, replace(day.fleet.fleet, pools={"rocm": a_pool_of_hosts()}))
    day.minutes(60)
    assert (build.ended, day.agents()) == (Ended.FINISHED, 0)
    assert_nothing_is_left(day)


def test_nothing_of_the_memory_is_needed_to_let_a_host_go():
    day = power_fails(a_day()).minutes(10)
    day.fleet.state.memory = replace(Memory(), version=day.fleet.state.memory.version)
    take_out(day).hours(3)
    assert_nothing_is_left(day)


@pytest.mark.parametrize("share", [Share.NONE, Share.COOPERATIVE])
def test_a_host_that_leaves_as_the_state_is_lost_ends_its_builds_first(share):
    """Its node stayed for ever, and took builds: only nodes that are offline were looked at (hostile world 3500152)."""
    day = a_day(share=share, controllers=TWO if share is not Share.NONE else ("main",))
    [build] = day.queue(1, "rocm", seconds=3600.0)
    day.minutes(2)
    assert build.started_at is not None
    day.fleet.state.records.clear()
    day.fleet.state.memory = Memory()
    take_out(day).minutes(10)
    [late] = day.queue(1, "rocm")
    day.minutes(30)
    assert (build.ended, late.started_at) == (None, None)
    day.minutes(60)
    assert build.ended is Ended.FINISHED
    assert_nothing_is_left(day)
