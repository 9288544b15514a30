"""Time-lines of static nodes beside machines that serve several controllers, and hosts: these get nodes of their own, and take no other."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.fleet import Share
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from autoscaler_workbench.simulate.result import leaked_instances, leaked_nodes
from support.builders import a_host, a_pool, a_pool_of_hosts
from support.left_keys import deploy, with_pools
from support.timeline import Day
from support.worlds import a_world_node, in_memory

SLOTS = {f"slot-{number}" for number in range(3)}


def a_day(share, *, hosts=()):
    facts = {"controllers": ("main", "other"), "share": share, "executors": 2, "max_agents": 1, "idle_seconds": 600.0}
    return Day(in_memory(a_pool_of_hosts("gpu", **facts) if hosts else a_pool("gpu", **facts), hosts=hosts)).minutes(6)


def on_other(day, seconds):
    return day.world.controllers["other"].submit("theirs", "gpu", seconds)


def make_static_nodes_on_other(day, **keys):
    """Deploy a fleet file with `nodes: slots` for a controller: its pools share nothing then."""
    for name in SLOTS:
        labels = ("gpu", day.fleet.fleet.ownership_label)
        day.world.controllers["other"].add_node(a_world_node(name, *labels, connected=False, survives_reload=True))
    file = day.fleet.fleet
    pools = {name: replace(pool, share=Share.NONE, **keys) for name, pool in file.pools.items()}
    deploy(day.fleet, replace(with_pools(file, pools), slot_controllers=frozenset({"other"})))
    return day


def assert_static_nodes_are_free(day):
    nodes = {name: node for name, node in day.world.controllers["other"].nodes.items() if not name.startswith("autoscaler-beacon")}
    assert {name: (node.temporarily_offline, node.connected) for name, node in nodes.items()} == dict.fromkeys(SLOTS, (False, False))


def test_a_side_whose_record_was_lost_keeps_its_own_node_and_its_build():
    day = a_day(Share.COOPERATIVE)
    day.queue(1, label="gpu", seconds=5400.0)
    build = on_other(day.minutes(10), seconds=1800.0)
    [machine] = day.minutes(4).world.alive()
    make_static_nodes_on_other(day)
    del day.fleet.state.records[f"{machine.id}@other"]
    day.fleet.agents.register(machine)
    day.minutes(40)
    assert (build.ended, build.killed_by) == (Ended.FINISHED, "")
    assert_static_nodes_are_free(day)
    day.minutes(120)
    assert (leaked_instances(day.world), leaked_nodes(day.world), day.fleet.state.records, day.failed) == ([], [], {}, 0)


def test_a_host_that_was_sent_to_a_controller_that_has_them_now_takes_none_and_comes_back():
    day = a_day(Share.ROTATE, hosts=(a_host(pool="gpu"),))
    on_other(day, seconds=60.0)
    while [record.node for record in day.fleet.state.records.values()] != [None]:
        day.world.move_to(day.world.timeline.now + 20.0)
        day.fleet.scale_up()
        day.fleet.scale_down()
    make_static_nodes_on_other(day, controllers=("main",)).minutes(30)
    assert_static_nodes_are_free(day)
    [record] = day.fleet.state.records.values()
    assert (record.controller, record.node, day.jenkins.nodes["rocm-1"].connected) == ("main", "rocm-1", True)


def test_a_side_that_has_one_gives_it_back():
    """A version that knew no better gave it one."""
    day = a_day(Share.COOPERATIVE)
    day.queue(1, label="gpu", seconds=3600.0)
    [machine] = make_static_nodes_on_other(day.minutes(10)).world.alive()
    name = f"{machine.id}@other"
    day.world.controllers["other"].delete_node(day.fleet.state.records[name].node)
    day.fleet.state.records[name] = replace(day.fleet.state.records[name].bound(node="slot-1"), labels=(), node_life=None)
    day.minutes(30)
    assert name not in day.fleet.state.records
    assert_static_nodes_are_free(day)


@pytest.mark.parametrize("is_off", [False, True])
def test_one_of_the_name_of_a_host_stays_when_the_host_leaves(is_off):
    day = Day(in_memory(a_pool_of_hosts(), hosts=(a_host(),)))
    day.jenkins.add_node(a_world_node("rocm-1", "rocm", day.fleet.fleet.ownership_label, connected=False, survives_reload=True))
    if is_off:
        day.minutes(6).fleet.agents.power_fails(day.world.hosts["rocm-1"])
    deploy(day.minutes(6).fleet, replace(day.fleet.fleet, hosts={}))
    day.minutes(40)
    assert (day.fleet.state.records, [name for name in day.nodes() if name == "rocm-1"]) == ({}, ["rocm-1"])
