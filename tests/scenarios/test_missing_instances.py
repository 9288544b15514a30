"""Time-lines of instances that EC2 does not show: that proves nothing, and yet nothing may stay for ever."""

from dataclasses import replace
from math import inf

import pytest

from autoscaler.domain.facts.orders import Scope
from autoscaler.domain.facts.plan import DeleteNode, Terminate
from autoscaler.domain.facts.reasons import Reason
from autoscaler_workbench.fakes.world.ec2.listing import Listing
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind
from autoscaler_workbench.simulate.drive import InMemory
from support.builders import a_fleet, a_pool
from support.remembered import tables
from support.timeline import Day
from support.worlds import a_world, in_memory

HERE, ELSEWHERE = "123456789012/us-west-2", "999999999999/eu-west-1"


@pytest.fixture
def day():
    return Day(in_memory(a_pool("cpu", idle_seconds=300.0))).minutes(2)


def hide(day):
    """From now on EC2 answers as if it had never heard of any instance."""
    for instance in day.world.ec2.instances.values():
        instance.visible_at = inf
    day.world.ec2.changes += 1


def show(day):
    for instance in day.world.ec2.instances.values():
        instance.visible_at = 0.0
    day.world.ec2.changes += 1


@pytest.mark.parametrize("minutes", [7, 60, 300])
def test_no_build_is_killed_however_long_ec2_shows_nothing(day, minutes):
    builds = day.queue(10, seconds=(minutes + 30) * 60.0, kind=Kind.PIPELINE)
    day.minutes(15)
    hide(day)
    day.minutes(minutes)
    assert [build.ended for build in builds] == [None] * 10
    assert len(day.nodes()) == 10
    show(day)
    day.minutes(60)
    assert [build.ended for build in builds] == [Ended.FINISHED] * 10
    assert (day.agents(), day.nodes()) == (0, [])


def test_nothing_is_given_up_and_somebody_is_told_while_ec2_shows_many_connected_agents_no_more(day):
    day.queue(5, seconds=300.0)
    day.minutes(7)
    hide(day)
    day.minutes(30)
    assert day.done(Terminate) == []
    assert Reason.EC2_DISAGREES in {held.reason for held in day.fleet.reports[-1].plan.held}
    show(day)
    day.minutes(20)
    assert day.agents() == 0


def test_an_instance_that_asks_again_while_ec2_does_not_show_it_is_not_told_to_power_off(day):
    [build] = day.queue(1, seconds=3600.0)
    day.minutes(10)
    [instance] = day.world.alive()
    hide(day)
    day.fleet.agents.register(instance)
    assert instance.alive()
    assert build.ended is None


def test_what_ended_while_nobody_looked_does_not_stay_for_ever(day):
    """EC2 tells of an instance for an hour after its end; the functions were off for longer."""
    day.queue(1, seconds=600.0)
    day.minutes(8)
    [instance] = day.world.alive()
    instance.interrupted = True
    day.world.ec2.announce = lambda _instance, _what: None
    day.world.ec2.end(instance)
    day.world.move_to(day.world.timeline.now + 7200.0)
    day.minutes(100)
    assert day.fleet.state.records
    day.minutes(60)
    assert day.nodes() == []
    assert not day.fleet.state.records


FLICKERS = [Listing(missing_by_id=0.6), Listing(missing_by_id=0.6, spell_seconds=1.0), Listing(missing=0.5, missing_by_id=0.9)]


@pytest.mark.parametrize("listing", FLICKERS)
@pytest.mark.parametrize("kind", [Kind.PIPELINE, Kind.FREESTYLE])
def test_what_has_terminated_is_gone_though_later_answers_leave_it_out(day, listing, kind):
    builds = day.queue(2, seconds=5 * 3600.0, kind=kind)
    day.minutes(8)
    for build in builds:
        build.waits_for_input = True  # else Jenkins aborts the step after five minutes, and the node is idle
    day.world.ec2.listing = listing
    for instance in day.world.alive():
        instance.interrupted = True
        day.world.ec2.announce = lambda _instance, _what: None
        day.world.ec2.end(instance)
    day.minutes(30)
    dead = {build.node for build in builds if build.ended is Ended.KILLED}
    assert (len(dead), dead & {*day.nodes()}) == (2, set())


def test_and_no_old_answer_takes_it_back(day):
    """A list may show for a while what has ended."""
    [build] = day.queue(1, seconds=5 * 3600.0, kind=Kind.PIPELINE)
    day.minutes(8)
    [instance] = day.world.alive()
    instance.interrupted = True
    day.world.ec2.announce = lambda _instance, _what: None
    day.world.ec2.end(instance)
    day.minutes(1)
    assert tables(day.fleet.state.memory).terminated.keys() == {instance.id}
    instance.state = "running"
    day.world.ec2.changes += 1
    day.minutes(2)
    assert tables(day.fleet.state.memory).terminated.keys() == {instance.id}
    instance.state = "terminated"
    day.world.ec2.changes += 1
    day.minutes(15)
    assert (build.ended, build.node in day.nodes()) == (Ended.KILLED, False)
    day.minutes(60)
    assert tables(day.fleet.state.memory).terminated == {}


def test_the_clock_of_an_end_that_hangs_goes_on_though_ec2_leaves_the_machine_out_now_and_then(day):
    day.queue(1, seconds=5 * 3600.0)
    day.minutes(8)
    [instance] = day.world.alive()
    instance.interrupted = True
    instance.state, instance.ended_at = "shutting-down", day.world.timeline.now
    day.world.ec2.listing = Listing(missing=0.4, missing_by_id=0.4, spell_seconds=1.0)
    day.world.ec2.changes += 1
    day.minutes(45)
    assert any("shuts down" in message.text for message in day.fleet.notifier.sent)


def test_a_machine_that_is_shutting_down_is_no_supply_and_its_node_waits_until_it_has_ended(day):
    [build] = day.queue(1, seconds=3600.0)
    day.minutes(10)
    [instance] = day.world.alive()
    instance.interrupted = True
    instance.state, instance.ended_at = "shutting-down", day.world.timeline.now  # it takes its time
    day.world.ec2.changes += 1
    [other] = day.queue(1)
    day.minutes(8)
    assert build.node in day.nodes()
    assert other.started_at is not None
    instance.state = "terminated"
    day.world.ec2.on_end(instance)
    day.world.ec2.changes += 1
    day.minutes(10)
    assert build.node not in day.nodes()


def test_a_stack_of_the_same_name_in_another_account_leaves_our_nodes_alone():
    fleet = a_fleet(a_pool("cpu", idle_seconds=300.0))
    world = a_world(fleet)
    ours = Day(InMemory(world, replace(fleet, home=HERE))).minutes(2)
    [build] = ours.queue(1, seconds=5 * 3600.0)
    ours.minutes(10)
    comes_up, announce = world.ec2.on_running, world.ec2.announce
    theirs = InMemory(a_world(fleet), replace(fleet, home=ELSEWHERE))
    theirs.ports = replace(theirs.ports, controllers=ours.fleet.ports.controllers)
    world.ec2.on_running, world.ec2.announce = comes_up, announce
    for _ in range(240):
        theirs.world.move_to(world.timeline.now)
        theirs.scale_down()
        ours.minutes(1)
    assert [result.step for report in theirs.reports for result in report.results if isinstance(result.step, DeleteNode)] == []
    assert build.ended is None


@pytest.mark.long
def test_a_pipeline_that_holds_the_node_of_a_forgotten_machine_ends_after_a_day():
    """Jenkins keeps what waits for a person on its executor until the node is deleted, and EC2 never says more than that it is unknown."""
    day = Day(in_memory(a_pool("cpu", idle_seconds=300.0))).minutes(2)
    [build] = day.queue(1, seconds=7200.0, kind=Kind.PIPELINE)
    day.minutes(8)
    build.waits_for_input = True
    [instance] = day.world.alive()
    instance.interrupted = True
    day.world.ec2.announce = lambda _instance, _what: None
    day.world.ec2.end(instance)
    instance.visible_at = inf
    day.minutes(6 * 60)
    assert build.node in day.nodes()
    day.minutes(19 * 60)
    assert day.nodes() == []
    assert build.ended is Ended.KILLED
    assert not day.fleet.state.records


def test_a_freeze_does_not_keep_an_instance_that_a_lost_state_forgot_from_counting(day):
    """Where EC2's list leaves it out later, nothing else would say that it is there."""
    day.queue(1, seconds=7200.0)
    day.minutes(8)
    now = day.world.timeline.now
    day.hold(scope=Scope.FLEET, name="", until_at=now + 3600.0, freeze=True)
    day.fleet.state.records.clear()
    day.minutes(8)
    assert [str(record.state) for record in day.fleet.state.records.values()] == ["registered"]
