"""Time-lines on a controller whose nodes an operator made beforehand."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.memory import Memory
from autoscaler.domain.facts.plan import DeleteNode, Terminate
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind
from autoscaler_workbench.simulate.result import leaked_instances, leaked_nodes
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory

THREE = {f"slot-{number}": ("cpu", "ssd") for number in range(3)}


def a_day(slots=None, **facts):
    return Day(in_memory(a_pool("cpu", **({"idle_seconds": 300.0} | facts)), slots=THREE if slots is None else slots))


def assert_every_slot_is_free(day):
    assert {name: (node.temporarily_offline, node.connected) for name, node in slots_of(day).items()} == dict.fromkeys(
        THREE, (False, False)
    )
    assert (leaked_instances(day.world), leaked_nodes(day.world), day.fleet.state.records) == ([], [], {})
    assert [build for build in day.jenkins.builds if build.killed_by] == []


def slots_of(day):
    return {name: node for name, node in day.jenkins.nodes.items() if name.startswith("slot-")}


def test_instances_take_slots_of_their_own_and_give_them_back():
    day = a_day()
    day.minutes(2)
    builds = day.queue(3, seconds=600.0)
    day.minutes(8)
    assert sorted(instance.tags["Name"] for instance in day.world.alive()) == sorted(THREE)
    assert len({build.node for build in builds}) == 3
    day.minutes(60)
    assert {build.ended for build in builds} == {Ended.FINISHED}
    assert day.agents() == 0
    assert_every_slot_is_free(day)
    assert day.done(DeleteNode) == []


def test_a_slot_is_taken_again_by_a_later_instance():
    day = a_day(slots={"slot-0": ("cpu",)})
    first = day.minutes(2).queue(1, seconds=60.0)
    day.minutes(40)
    second = day.queue(1, seconds=60.0)
    day.minutes(40)
    assert [build.ended for build in first + second] == [Ended.FINISHED] * 2
    assert {build.node for build in first + second} == {"slot-0"}
    assert len(day.world.ec2.instances) == 2


def test_no_more_instances_are_launched_than_there_are_slots():
    day = a_day()
    day.minutes(2).queue(10, seconds=3600.0)
    day.minutes(15)
    assert day.agents() == 3
    assert "no-free-slot" in {str(held.reason) for report in day.fleet.reports for held in report.plan.held}


def test_a_slot_that_a_person_took_offline_is_not_given_away_and_stays_theirs():
    day = a_day()
    day.jenkins.set_offline("slot-1", "disk swap", "anna")
    day.minutes(2).queue(10, seconds=300.0)
    day.minutes(40)
    assert "slot-1" not in {instance.tags.get("Name") for instance in day.world.ec2.instances.values()}
    assert (day.jenkins.nodes["slot-1"].temporarily_offline, day.jenkins.nodes["slot-1"].reason) == (True, "disk swap")


def test_slots_belong_to_the_pool_whose_labels_they_have_most_of():
    fleet = in_memory(
        a_pool("cpu", idle_seconds=300.0),
        a_pool("gpu", labels=frozenset({"cpu", "gpu"}), idle_seconds=300.0),
        slots={"slot-c": ("cpu",), "slot-g": ("cpu", "gpu")},
    )
    day = Day(fleet)
    day.minutes(2).queue(1, label="gpu", seconds=900.0)
    day.queue(1, label="cpu&&!gpu", seconds=900.0)
    day.minutes(8)
    assert {i.tags["autoscaler:pool"]: i.tags["Name"] for i in day.world.alive()} == {"cpu": "slot-c", "gpu": "slot-g"}


def test_a_machine_that_somebody_terminates_leaves_its_slot_free():
    day = a_day()
    day.minutes(2).queue(1, seconds=120.0)
    day.minutes(8)
    for instance in day.world.alive():
        day.world.ec2.end(instance)
    day.minutes(30)
    assert_every_slot_is_free(day)


def test_a_lost_state_table_leaves_no_slot_offline_and_kills_nothing():
    day = a_day()
    day.minutes(2)
    builds = day.queue(2, seconds=1800.0, kind=Kind.PIPELINE)
    day.minutes(10)
    idle = next(node for node in slots_of(day).values() if not node.builds)
    day.jenkins.set_offline(idle.name, "autoscaler:f:retire:p", "bot")
    day.fleet.state.records.clear()
    day.fleet.state.intents.clear()
    day.fleet.state.memory = replace(Memory(), version=day.fleet.state.memory.version)
    day.minutes(90)
    assert {build.ended for build in builds} == {Ended.FINISHED}
    assert_every_slot_is_free(day)


@pytest.mark.parametrize(
    "call", ["jenkins toggleOffline", "ec2 DescribeInstances", "ec2 CreateTags", "state change_record", "jenkins computer"]
)
@pytest.mark.parametrize("after", [False, True], ids=["before it took effect", "after it took effect"])
def test_any_call_may_fail_and_every_slot_is_free_in_the_end(call, after):
    day = a_day()
    day.minutes(2)
    builds = day.queue(3, seconds=300.0)
    for _ in range(70):
        day.world.move_to(day.world.timeline.now + 60)
        if day.world.timeline.now % 600 < 60:
            day.fleet.faults.plan(Fault(call, after=after))
        for function in (day.fleet.publish_metrics, day.fleet.scale_up, day.fleet.scale_down):
            try:
                function()
            except Exception as error:  # noqa: BLE001 - Lambda's own boundary
                assert type(error).__module__.startswith("autoscaler."), repr(error)
    day.fleet.faults.planned.clear()
    day.minutes(40)
    assert {build.ended for build in builds} == {Ended.FINISHED}
    assert_every_slot_is_free(day)


def test_the_machine_of_a_slot_that_asks_again_is_told_the_same():
    day = a_day()
    day.minutes(2).queue(1, seconds=3600.0)
    day.minutes(8)
    [instance] = day.world.alive()
    before = instance.tags["Name"]
    day.world.ec2.on_running(instance)
    day.minutes(2)
    assert instance.tags["Name"] == before
    assert [record.node for record in day.fleet.state.records.values()] == [before]


def test_a_slot_stays_offline_until_its_machine_has_surely_ended():
    """Online before that it would take builds, and the machine would take them with it."""
    day = a_day(slots={"slot-0": ("cpu",)})
    day.minutes(2).queue(1, seconds=60.0)
    while not day.done(Terminate):
        day.minutes(1)
    [instance] = day.world.ec2.instances.values()
    for _ in range(4):
        assert day.jenkins.nodes["slot-0"].temporarily_offline
        day.minutes(1)
    assert instance.state == "terminated"
    day.minutes(5)
    assert not day.jenkins.nodes["slot-0"].temporarily_offline
    assert day.fleet.state.records == {}
