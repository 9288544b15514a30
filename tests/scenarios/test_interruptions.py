"""Time-lines of spot machines that EC2 takes back before they are agents: nothing counts on them, and nobody blames their image."""

import pytest

from autoscaler.domain.facts.fleet import Market
from autoscaler.domain.facts.plan import Cordon, Launch, Terminate, Uncordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import RecordState
from autoscaler.domain.situation.bets import TrialOf
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from support.builders import a_pool, an_offering
from support.timeline import Day
from support.worlds import in_memory

SPOT = an_offering(subnet="subnet-a", market=Market.SPOT, usd_per_hour=1.0)
OTHER = an_offering(subnet="subnet-b", market=Market.SPOT, usd_per_hour=1.0)
FIRM = an_offering(subnet="subnet-a", usd_per_hour=3.0)


def a_day(*offerings, **pool):
    given = {"offerings": offerings or (SPOT,), "idle_seconds": 600.0, "max_agents": 20, "queue_maturity_seconds": 0.0}
    day = Day(in_memory(a_pool("cpu", **(given | pool)), max_launches_per_hour=1000))
    day.world.ec2.zones["subnet-b"] = "us-west-2b"
    return day.minutes(2)


def launched(day):
    return sum(step.count for step in day.done(Launch))


def young(day):
    """The machine that was launched for one job, and boots."""
    day.queue(1, seconds=300.0)
    day.minutes(1)
    [instance] = day.world.alive()
    return instance


def interrupt(day, instance, **how):
    day.world.ec2.interrupt(instance, **how)


def lost(day):
    return [build for build in day.jenkins.builds if build.killed_by]


def why(day, subject):
    return " ".join(day.why(subject))


def boots_failed(day):
    return [event for event, _ in day.fleet.logged if event == "boot_failed"]


def state_of(day, instance):
    return day.fleet.state.records[instance.id].state


@pytest.mark.parametrize("offerings", [(SPOT,), (SPOT, OTHER), (SPOT, FIRM)], ids=["alone", "another subnet", "on-demand"])
def test_another_is_launched_in_the_next_look_and_of_something_else_if_there_is_anything(offerings):
    day = a_day(*offerings)
    instance = young(day)
    interrupt(day, instance)
    day.minutes(1)
    [other] = [one for one in day.world.alive() if one is not instance]
    taken, replaced = (instance.subnet, instance.market), (other.subnet, other.market)
    assert (taken == replaced) is (len(offerings) == 1)
    assert "EC2 announced" in why(day, instance.id)
    assert ": draining; " in why(day, instance.id)


def test_it_never_becomes_an_agent_and_powers_off_when_it_asks():
    day = a_day(boot_seconds=60.0)
    instance = young(day)
    interrupt(day, instance, ends=False)
    day.minutes(8)
    assert not instance.alive()
    assert (day.done(Cordon), day.done(Terminate)) == ([], []), "it never had a node"
    assert {build.ended for build in day.jenkins.builds} <= {Ended.FINISHED, None}
    assert lost(day) == []


def test_machines_that_are_all_taken_back_close_no_pool():
    day = a_day(boot_seconds=300.0)
    builds, hit = day.queue(4, seconds=300.0), set()
    for _ in range(60):
        day.minutes(1)
        for instance in [one for one in day.world.alive() if one.id not in hit and day.world.timeline.now - one.launched_at > 50]:
            hit.add(instance.id)
            interrupt(day, instance)
    day.minutes(12)
    assert {build.ended for build in builds} == {Ended.FINISHED} or all(build.started_at for build in builds)
    assert boots_failed(day) == []
    assert not any(held.reason is Reason.BREAKER_OPEN for report in day.fleet.reports for held in report.plan.held)


@pytest.mark.parametrize("reason", ["Server.SpotInstanceTermination", "Server.ScheduledStop"])
def test_a_machine_that_ec2_ends_without_a_word_is_no_failed_boot(reason):
    day = a_day(boot_seconds=300.0)
    [build] = day.queue(1, seconds=60.0)
    for _ in range(5):
        day.minutes(2)
        for instance in day.world.alive():
            instance.state_reason = reason
            day.world.ec2.end(instance)
    assert boots_failed(day) == []
    assert TrialOf.TAKEN_BACK.scope("cpu", SPOT.key) in day.fleet.state.memory.trials
    day.minutes(20)
    assert build.ended is Ended.FINISHED


@pytest.mark.parametrize("reason", ["Server.InternalError", "Client.InstanceInitiatedShutdown", ""])
def test_what_ended_for_another_reason_is_a_failed_boot_still(reason):
    day = a_day(boot_seconds=300.0)
    instance = young(day)
    instance.state_reason = reason
    day.world.ec2.end(instance)
    day.minutes(4)
    assert len(boots_failed(day)) == 1


def test_what_has_registered_and_not_connected_yet_takes_no_build():
    """The announcement finds a node that nobody is connected to."""
    day = a_day()
    day.world.physics = day.world.ec2.physics
    connect = day.jenkins.connect
    waiting = []
    day.jenkins.connect = lambda name: waiting.append(name) if name not in waiting else connect(name)
    [build] = day.queue(1, seconds=300.0)
    while not waiting:
        day.minutes(1)
    [instance] = day.world.alive()
    interrupt(day, instance)
    node = day.world.node_of(instance)
    assert node.temporarily_offline
    day.jenkins.connect = connect
    connect(waiting[0])
    day.minutes(1)
    assert build.node != node.name
    assert launched(day) == 2
    day.minutes(12)
    assert build.ended is Ended.FINISHED
    assert lost(day) == []


@pytest.mark.parametrize("state", [RecordState.REQUESTED, RecordState.REGISTERED])
def test_an_announcement_at_the_moment_of_its_registration_is_not_lost(state):
    """Whoever writes the record second has read it before the other one wrote."""
    day = a_day(boot_seconds=60.0)
    instance = young(day)
    day.minutes(1)
    writes = []

    def meanwhile(call):
        if call == "state change_record" and not writes:
            writes.append(call)
            interrupt(day, instance, ends=False)

    if state is RecordState.REGISTERED:
        day.fleet.faults.meanwhile = meanwhile
    else:
        interrupt(day, instance, ends=False)
    day.minutes(2)
    node = day.world.node_of(instance)
    assert node is None or node.temporarily_offline
    assert not any(build.node == (node and node.name) for build in day.jenkins.builds if build.node)


def test_a_node_that_was_being_made_when_it_was_announced_gets_no_agent():
    day = a_day(boot_seconds=60.0)
    instance = young(day)

    def meanwhile(call):
        if call == "jenkins doCreateItem" and not instance.interrupted:
            interrupt(day, instance)

    day.fleet.faults.meanwhile = meanwhile
    day.minutes(14)
    assert lost(day) == []
    assert not instance.alive()
    assert instance.id.removeprefix("i-") not in " ".join(day.nodes())
    assert boots_failed(day) == []
    assert {build.ended for build in day.jenkins.builds} == {Ended.FINISHED}


def test_an_announcement_that_could_not_be_written_down_is_one_that_lambda_tries_again():
    day = a_day()
    instance = young(day)
    day.fleet.faults.plan(Fault("state change_record"))
    interrupt(day, instance)
    assert any(event == "instance_events_failed" for event, _ in day.fleet.logged)
    day.world.ec2.announce(instance, "interruption")
    day.minutes(1)
    assert launched(day) == 2


def test_a_machine_that_boots_on_after_its_announcement_is_an_agent_like_any_other():
    day = a_day(boot_seconds=900.0, boot_timeout_seconds=1800.0)
    instance = young(day)
    interrupt(day, instance, ends=False)
    while instance.booted_at is None:
        day.minutes(1)
    day.minutes(1)
    assert instance.alive()
    assert not day.world.node_of(instance).temporarily_offline
    assert lost(day) == []


def test_an_agent_whose_end_does_not_come_is_used_again():
    day = a_day()
    day.queue(1, seconds=3600.0)
    day.minutes(8)
    [instance] = day.world.alive()
    interrupt(day, instance, ends=False)
    node = day.world.node_of(instance)
    day.minutes(8)
    assert node.temporarily_offline
    day.minutes(4)
    assert not node.temporarily_offline
    assert [step.reason for step in day.done(Uncordon)] == [Reason.NOT_INTERRUPTED]
    day.minutes(60)
    assert lost(day) == []
    assert [step for step in day.done(Cordon) if step.reason is Reason.DRAINED_BEFORE_RESTART] == []


def test_an_agent_of_the_only_place_of_its_pool_makes_way_once_it_has_ended():
    day = a_day(max_agents=1)
    instance = young(day)
    interrupt(day, instance)
    day.minutes(12)
    [build] = day.jenkins.builds
    assert (build.ended, launched(day), day.done(Terminate)) == (Ended.FINISHED, 2, [])


def test_people_are_told_that_ec2_takes_machines_back_where_it_goes_on():
    day = a_day(boot_seconds=300.0)
    day.queue(2, seconds=300.0)
    for _ in range(40):
        day.minutes(1)
        for instance in [one for one in day.world.alive() if not one.interrupted and day.world.timeline.now - one.launched_at > 50]:
            interrupt(day, instance)
    subjects = [message.subject for message in day.fleet.notifier.sent]
    assert subjects == ["[f] EC2 takes machines of cpu back"]
    assert SPOT.key in day.fleet.notifier.sent[0].text
    day.minutes(150)
    assert [message.subject for message in day.fleet.notifier.sent][-1] == "[f] over: EC2 takes machines of cpu back"


def test_only_what_had_a_machine_is_said_to_be_taken_back():
    """Long after its end EC2 lists a machine no more, so that nobody knows on which of the type's offerings it was."""
    day = a_day(SPOT, OTHER, FIRM)
    for _ in range(4):
        instance = young(day)
        day.minutes(3)
        interrupt(day, instance)
        day.minutes(30)
    used = {f"{one.instance_type}/{one.subnet}/{one.market}" for one in day.world.ec2.instances.values()}
    taken = {scope.partition("/")[2] for scope in day.fleet.state.memory.trials if scope.startswith(TrialOf.TAKEN_BACK)}
    assert {name.partition("/")[2] for name in taken} <= used
