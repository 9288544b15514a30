"""Time-lines of controllers whose `nodes` changes while agents are there: static nodes stay, and ours are drained."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.fleet import WarmPool
from autoscaler.domain.facts.memory import Memory
from autoscaler.domain.facts.plan import DeleteNode
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind, Stopper
from autoscaler_workbench.simulate.result import leaked_instances, leaked_nodes
from support.builders import a_pool, an_offering
from support.left_keys import deploy, with_pools
from support.timeline import Day
from support.worlds import a_world_node, in_memory

SLOTS = {f"slot-{number}": ("cpu",) for number in range(3)}
PLAIN = {"idle_seconds": 300.0}


def on_slots(**facts):
    """Static nodes, until the fleet file changes."""
    return Day(in_memory(a_pool("cpu", **(PLAIN | facts)), slots=SLOTS)).minutes(2)


def on_own_nodes(**facts):
    """Nodes of ours, until the fleet file changes."""
    return Day(in_memory(a_pool("cpu", **(PLAIN | facts)))).minutes(2)


def change(day, nodes):
    """Deploy the fleet file with another `nodes`; for static ones the operator makes some first."""
    if nodes == "slots":
        for name, labels in SLOTS.items():
            if name not in day.jenkins.nodes:
                day.jenkins.add_node(a_world_node(name, *labels, day.fleet.fleet.ownership_label, connected=False, survives_reload=True))
    day.fleet.fleet = replace(day.fleet.fleet, slot_controllers=frozenset({"main"} if nodes == "slots" else ()))
    return day


def forget(day):
    """Lose the state table."""
    day.fleet.state.records.clear()
    day.fleet.state.intents.clear()
    day.fleet.state.memory = replace(Memory(), version=day.fleet.state.memory.version)


def slots_of(day):
    return {name: (node.temporarily_offline, node.connected) for name, node in day.jenkins.nodes.items() if name in SLOTS}


def assert_nothing_is_left(day):
    assert slots_of(day) == dict.fromkeys(SLOTS, (False, False))
    assert (sorted(day.nodes()), leaked_instances(day.world), leaked_nodes(day.world)) == (sorted(SLOTS), [], [])
    assert (day.agents(), day.fleet.state.records, day.failed) == (0, {}, 0)
    assert [build for build in day.jenkins.builds if build.killed_by] == []


# Minutes of a build of 10 minutes at which the fleet file changes: the instance boots, is at work, idle, drained, terminated, or gone.
MINUTES = [1, 2, 6, 14, 17, 18, 19, 20, 22, 24]


@pytest.mark.parametrize("at", MINUTES)
def test_a_node_that_we_did_not_make_is_never_deleted(at):
    day = on_slots()
    builds = day.queue(2, seconds=600.0)
    change(day.minutes(at), "dynamic").minutes(60)
    assert {build.ended for build in builds} == {Ended.FINISHED}
    assert_nothing_is_left(day)


@pytest.mark.parametrize("at", MINUTES)
def test_nodes_of_ours_are_drained_and_are_no_free_ones(at):
    day = on_own_nodes()
    builds = day.queue(2, seconds=600.0)
    change(day.minutes(at), "slots").minutes(60)
    assert {build.ended for build in builds} == {Ended.FINISHED}
    assert_nothing_is_left(day)


@pytest.mark.parametrize("begin", [on_slots, on_own_nodes])
def test_agents_that_are_always_wanted_are_replaced_by_such_as_the_file_asks_for(begin):
    day = begin(min_agents=2, max_agents=4).minutes(10)
    before = {instance.id for instance in day.world.alive()}
    change(day, "dynamic" if begin is on_slots else "slots").minutes(4 * 60)
    assert not before & {instance.id for instance in day.world.alive()}
    assert day.agents() == 2
    taken = {instance.tags["Name"] for instance in day.world.alive()}
    assert (taken <= set(SLOTS)) is (begin is on_own_nodes)
    assert set(SLOTS) <= set(day.nodes())


@pytest.mark.parametrize("begin", [on_slots, on_own_nodes])
def test_an_agent_whose_node_is_of_the_other_kind_says_why_it_goes(begin):
    day = begin(min_agents=1).hours(3)  # until then a restart that nobody saw may have bound a build to a node
    [instance] = day.world.alive()
    change(day, "dynamic" if begin is on_slots else "slots").minutes(1)
    told = day.why(instance.tags["Name"])
    assert any("nodes: " in line for line in told), told


@pytest.mark.parametrize("begin", [on_slots, on_own_nodes])
def test_a_build_runs_to_its_end_though_the_agent_asks_again_and_the_file_changes_back(begin):
    day = begin()
    [build] = day.queue(1, seconds=3600.0)
    day.minutes(8)
    [instance] = day.world.alive()
    name = instance.tags["Name"]
    change(day, "dynamic" if begin is on_slots else "slots").minutes(4)
    day.world.ec2.on_running(instance)  # its service starts anew, and asks who it is
    change(day.minutes(4), "slots" if begin is on_slots else "dynamic").minutes(4)
    assert (build.node, build.ended, instance.tags["Name"]) == (name, None, name)
    change(day, "slots").minutes(120)
    assert build.ended is Ended.FINISHED
    assert_nothing_is_left(day)


@pytest.mark.parametrize("begin", [on_slots, on_own_nodes])
def test_with_a_lost_state_table_static_nodes_stay_and_are_free_and_ours_go(begin):
    day = begin()
    builds = day.queue(2, seconds=1800.0, kind=Kind.PIPELINE)
    day.minutes(10)
    change(day, "dynamic" if begin is on_slots else "slots")
    forget(day)
    day.minutes(120)
    assert {build.ended for build in builds} == {Ended.FINISHED}
    change(day, "slots")
    assert_nothing_is_left(day)


def test_a_static_node_that_a_pass_was_cut_off_from_freeing_is_freed_whatever_the_file_says():
    day = on_slots()
    day.jenkins.set_offline("slot-1", "autoscaler:f:retire:p", "bot")
    change(day, "dynamic").minutes(10)
    assert_nothing_is_left(day)


@pytest.mark.parametrize("fate", ["terminated by somebody", "stopped by somebody", "interrupted"])
@pytest.mark.parametrize("begin", [on_slots, on_own_nodes])
@pytest.mark.long
def test_a_machine_that_ends_by_itself_leaves_no_node_of_ours_and_takes_no_static_one(begin, fate):
    day = begin()
    day.queue(2, seconds=3600.0)
    day.minutes(8)
    change(day, "dynamic" if begin is on_slots else "slots")
    end = {"terminated by somebody": day.world.ec2.end, "stopped by somebody": day.world.ec2.stop, "interrupted": day.world.ec2.interrupt}
    for instance in day.world.alive():
        end[fate](instance.id if "stopped" in fate else instance)
    for build in list(day.jenkins.builds):
        build.seconds = 60.0
    day.minutes(24 * 60)
    assert set(SLOTS) <= set(day.nodes()) or begin is on_own_nodes
    change(day, "slots").minutes(30)
    assert (sorted(day.nodes()), day.agents(), day.fleet.state.records) == (sorted(SLOTS), 0, {})


def test_stopped_agents_are_let_go_and_take_no_static_node():
    kept = WarmPool(min_agents=1, max_agents=5, max_age_seconds=7 * 86_400.0)
    firm = an_offering(usd_per_hour=3.0, volume_usd_per_hour=0.01)
    day = on_own_nodes(warm_pool=kept, offerings=(firm,))
    day.queue(2, seconds=300.0)
    day.minutes(60)
    assert day.agents() > 0
    assert not any(instance.is_on() for instance in day.world.alive())
    change(day, "slots").minutes(30)
    assert not day.agents()


@pytest.mark.parametrize("serves", [(), ("other",)], ids=["no pool any more", "another controller alone"])
def test_a_pool_may_leave_a_controller_while_its_agents_boot_for_static_nodes(serves):
    both = {"controllers": ("main", "other")}
    day = Day(in_memory(a_pool("cpu", **both), a_pool("web", **both), slots=SLOTS)).minutes(2)
    builds = day.queue(2)
    file = day.minutes(1).fleet.fleet
    assert [record.node for record in day.fleet.state.records.values()] == [None, None]
    pools = {"cpu": replace(file.pools["cpu"], controllers=serves), "web": file.pools["web"]} if serves else {"web": file.pools["web"]}
    deploy(day.fleet, with_pools(file, pools))
    for build in builds:
        day.minutes(1).jenkins.abort(build, Stopper.PERSON)
    day.minutes(60)
    assert_nothing_is_left(day)


@pytest.mark.parametrize(
    "call", ["jenkins doDelete", "ec2 DescribeInstances", "state change_record", "jenkins computer", "jenkins toggleOffline"]
)
@pytest.mark.parametrize("begin", [on_slots, on_own_nodes])
def test_calls_may_fail_meanwhile(begin, call):
    day = begin()
    builds = day.queue(2, seconds=600.0)
    day.minutes(10)
    change(day, "dynamic" if begin is on_slots else "slots")
    for _ in range(50):
        if day.world.timeline.now % 300 < 60:
            day.fleet.faults.plan(Fault(call))
        day.world.move_to(day.world.timeline.now + 60)
        for function in (day.fleet.publish_metrics, day.fleet.scale_up, day.fleet.scale_down):
            try:
                function()
            except Exception as error:  # noqa: BLE001 - Lambda's own boundary
                assert type(error).__module__.startswith("autoscaler."), repr(error)
    day.fleet.faults.planned.clear()
    change(day.minutes(40), "slots")
    assert {build.ended for build in builds} == {Ended.FINISHED}
    day.failed = 0
    assert_nothing_is_left(day)
    assert not [step for step in day.done(DeleteNode) if step.node in SLOTS]
