"""Time-lines of reserved agents to which something happens: age, people, EC2, restarts, calls that are cut off."""

from contextlib import suppress

import pytest

from autoscaler.domain.facts.fleet import Market
from autoscaler.domain.facts.plan import Launch, Terminate
from autoscaler.domain.facts.reasons import Reason
from autoscaler.errors import AutoscalerError
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind
from support.builders import an_offering
from support.reserving import a_day, an_idle_day, connected, instance_of, reserve, reserved


def test_neither_age_nor_a_new_template_nor_failures_touch_it():
    day = an_idle_day(max_agent_hours=1.0)
    [node] = connected(day)
    reserve(day, hours=12.0)
    day.world.ec2.template_versions["cpu"] = 2
    for _ in range(8):
        day.queue(2, seconds=300.0)
        day.minutes(60)
    assert node.name in day.jenkins.nodes
    assert node.reason.split(":")[2] == "reserved"


def test_somebody_who_brings_it_online_in_jenkins_gives_it_no_builds_for_long():
    day = an_idle_day()
    [node] = connected(day)
    reserve(day, hours=4.0)
    day.minutes(5)
    day.jenkins.toggle(node.name, "", "bob")
    assert not node.offline
    day.minutes(1)
    assert node.temporarily_offline
    day.minutes(30)
    assert node.name in day.jenkins.nodes


def test_its_machine_may_be_stopped_and_its_node_deleted_by_the_person_and_it_ends_all_the_same():
    day = an_idle_day(agents=2)
    first, second = connected(day)
    reserve(day, first.name, hours=2.0)
    reserve(day, second.name, hours=2.0, request="r-2")
    machines = [instance_of(day, node.name) for node in (first, second)]
    day.world.ec2.stop(machines[0].id)
    day.jenkins.delete_node(second.name)
    day.minutes(100)
    assert (machines[0].state, machines[1].alive()) == ("stopped", True)
    day.minutes(40)
    assert [machine.alive() for machine in machines] == [False, False]
    assert "boot/cpu" not in day.fleet.state.memory.trials


def test_an_instance_that_ends_ends_the_reservation():
    day = an_idle_day()
    [node] = connected(day)
    reserve(day, hours=4.0)
    day.world.ec2.end(instance_of(day, node.name))
    day.minutes(20)
    assert (reserved(day), node.name in day.jenkins.nodes) == ([], False)


def test_a_person_is_told_that_ec2_takes_their_spot_instance_back():
    spot = an_offering(market=Market.SPOT, usd_per_hour=1.0)
    day = an_idle_day(offerings=(spot,))
    [node] = connected(day)
    reserve(day, hours=4.0)
    day.world.ec2.interrupt(instance_of(day, node.name))
    day.fleet.publish_metrics()
    [message] = day.fleet.notifier.sent
    assert f"EC2 takes {node.name} from alice" in message.subject
    day.minutes(20)
    assert reserved(day) == []


def test_a_person_is_told_too_if_ec2_takes_their_instance_back_while_it_boots():
    day = a_day(offerings=(an_offering(market=Market.SPOT, usd_per_hour=1.0),))
    reserve(day)
    [machine] = day.world.alive()
    day.world.ec2.interrupt(machine)
    day.fleet.publish_metrics()
    assert [f"EC2 takes {machine.id} from alice" in message.subject for message in day.fleet.notifier.sent] == [True]


def test_an_agent_on_demand_is_taken_before_one_of_the_spot_market_and_launched_too():
    spot, firm = an_offering(market=Market.SPOT, usd_per_hour=1.0), an_offering(usd_per_hour=3.0)
    day = a_day(offerings=(spot, firm))
    reserve(day)
    [launch] = day.done(Launch)
    assert launch.market is Market.ON_DEMAND


def test_a_static_node_is_reserved_and_free_again_after_it():
    slots = {"slot-1": ("cpu",), "slot-2": ("cpu",)}
    day = a_day(slots=slots)
    reserve(day)
    day.minutes(10)
    [record] = reserved(day)
    node = day.jenkins.nodes[record.node]
    assert (node.connected, node.temporarily_offline) == (True, True)
    [build] = day.queue(1, seconds=60.0)
    day.minutes(10)
    assert (build.ended, build.node != record.node) == (Ended.FINISHED, True)
    day.minutes(70)
    assert (node.temporarily_offline, node.connected, day.agents()) == (False, False, 0)


def test_a_pipeline_that_was_on_it_when_jenkins_restarted_resumes_and_ends_there():
    day = a_day()
    [build] = day.queue(1, seconds=1200.0, kind=Kind.PIPELINE)
    day.minutes(8)
    node = build.node
    reserve(day, node, hours=3.0)
    day.minutes(2)
    day.jenkins.restart()
    day.minutes(40)
    assert build.ended is Ended.FINISHED
    day.minutes(10)
    assert day.jenkins.nodes[node].temporarily_offline
    day.minutes(150)
    assert node not in day.jenkins.nodes


def test_boots_that_fail_open_the_breaker_for_people_too():
    day = a_day(boot_timeout_seconds=300.0)
    day.world.ec2.on_running = lambda instance: None
    reserve(day, hours=5.0)
    day.minutes(15)
    assert (reserved(day), day.fleet.state.memory.trials["boot/cpu"].failures) == ([], 1)


def test_what_a_person_has_does_not_keep_a_new_image_or_template_from_being_tried():
    day = a_day()
    day.queue(1, seconds=60.0)
    day.minutes(8)
    day.world.ec2.template_versions["cpu"] = 2
    day.minutes(30)
    reserve(day, hours=10.0)
    day.minutes(10)
    builds = day.queue(3, seconds=60.0)
    day.minutes(30)
    assert {build.ended for build in builds} == {Ended.FINISHED}


@pytest.mark.parametrize("call", ["jenkins computer", "jenkins changeOfflineCause", "jenkins config.xml", "state change_record"])
@pytest.mark.parametrize("after", [False, True])
def test_a_reservation_that_is_cut_off_is_made_good_or_was_never_there(call, after):
    day = an_idle_day(agents=2)
    names = {node.name for node in connected(day)}
    day.fleet.faults.plan(Fault(call, after=after, status=0))
    with suppress(AutoscalerError):
        reserve(day, hours=3.0)
    day.fleet.faults.planned.clear()
    builds = day.queue(2, seconds=60.0)
    day.minutes(10)
    marked = [name for name in names if day.jenkins.nodes[name].temporarily_offline]
    assert len(marked) == len(reserved(day)) <= 1
    assert {build.ended for build in builds} == {Ended.FINISHED}
    day.minutes(190)
    assert reserved(day) == []


def test_done_terminations_are_of_the_reservation_alone():
    day = an_idle_day()
    reserve(day)
    day.minutes(70)
    assert [step.reason for step in day.done(Terminate)] == [Reason.DRAINED]


def test_a_node_that_a_person_deletes_of_what_was_launched_for_them_is_no_boot_that_failed():
    day = a_day()
    reserve(day)
    day.minutes(10)
    [record] = reserved(day)
    day.jenkins.delete_node(record.node)
    day.minutes(70)
    assert (day.agents(), "boot/cpu" in day.fleet.state.memory.trials) == (0, False)
