"""Time-lines of agents that were given up and could not go at once: whatever happens to them meanwhile, no build is killed."""

from dataclasses import replace

from autoscaler.domain.facts.plan import Terminate
from autoscaler.domain.facts.reasons import Reason
from autoscaler_workbench.fakes.identity import ask_pass
from autoscaler_workbench.fakes.world.agents import Agents
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory


def a_day():
    return Day(in_memory(a_pool("cpu", idle_seconds=300.0)))


def condemned(day):
    """An agent that was given up, and that EC2 does not let go."""
    day.minutes(2).queue(1, seconds=60.0)
    day.minutes(6)
    [instance] = day.world.alive()
    instance.protected = True
    day.minutes(20)
    assert [str(record.state) for record in day.fleet.state.records.values()] == ["condemned"]
    return instance, day.jenkins.nodes[instance.tags["Name"]]


def test_a_given_up_agent_that_somebody_brings_online_is_drained_again_and_goes_when_its_builds_are_done():
    day = a_day()
    instance, node = condemned(day)
    day.jenkins.toggle(node.name, "", "anna")
    [build] = day.queue(1, seconds=3600.0)
    instance.protected = False
    day.minutes(30)
    assert build.node == node.name
    assert (instance.alive(), build.ended) == (True, None)
    assert node.reason.startswith("autoscaler:f:retire:")
    day.minutes(60)
    assert build.ended is Ended.FINISHED
    assert not instance.alive()
    assert day.nodes() == []


def test_its_last_read_comes_after_it_is_given_up_and_right_before_it_is_terminated():
    """Whoever brings it online in between is seen: only EC2's own answer is left to race with."""
    day = a_day()
    day.minutes(2).queue(1, seconds=60.0)
    day.minutes(6)
    calls = []
    day.fleet.faults.meanwhile = calls.append
    while not day.done(Terminate):
        calls.clear()
        day.minutes(1)
    at = calls.index("ec2 TerminateInstances")
    assert calls[at - 2 : at] == ["state change_record", "jenkins computer"]


def a_build_slips_in(day, instance, **facts):
    """As soon as the agent is given up, and before the last read, somebody brings it online and a build starts there."""
    late = []

    def meanwhile(call):
        if call == "state change_record" and not late:
            day.jenkins.toggle(instance.tags["Name"], "", "anna")
            late.extend(day.queue(1, seconds=1800.0, **facts))
            day.world.move_to(day.world.timeline.now + 1.0)

    day.fleet.faults.meanwhile = meanwhile
    return late


def test_a_build_that_slips_in_between_keeps_the_agent_until_it_is_done():
    day = a_day()
    day.minutes(2).queue(1, seconds=60.0)
    day.minutes(6)
    [instance] = day.world.alive()
    late = a_build_slips_in(day, instance)
    day.minutes(30)
    assert late[0].ended is None
    assert instance.alive()
    day.minutes(60)
    assert late[0].ended is Ended.FINISHED
    assert not instance.alive()
    assert day.nodes() == []


def test_what_a_build_slipped_into_at_the_last_moment_may_reconnect():
    """A condemned agent that asks who it is would power off under the build."""
    day = a_day()
    day.minutes(2).queue(1, seconds=60.0)
    day.minutes(6)
    [instance] = day.world.alive()
    late = a_build_slips_in(day, instance, kind=Kind.PIPELINE)
    while not late:
        day.minutes(1)
    day.fleet.faults.meanwhile = lambda _call: None
    assert [str(record.state) for record in day.fleet.state.records.values()] == ["registered"]
    day.fleet.agents.begins_anew(instance)
    assert instance.alive()
    day.minutes(60)
    assert late[0].ended is Ended.FINISHED


def test_the_last_read_that_fails_leaves_the_agent_as_it_was():
    day = a_day()
    day.minutes(2).queue(1, seconds=60.0)
    day.minutes(6)
    calls = []

    def meanwhile(call):
        if calls[-1:] == ["state change_record"] and call == "jenkins computer":
            day.fleet.faults.plan(Fault("jenkins computer", status=503))
        calls.append(call)

    day.fleet.faults.meanwhile = meanwhile
    while not day.fleet.faults.seen:
        day.minutes(1)
    assert [str(record.state) for record in day.fleet.state.records.values()] == ["registered"]


def test_a_given_up_agent_that_is_at_work_is_not_told_to_power_off():
    day = a_day()
    instance, node = condemned(day)
    day.jenkins.toggle(node.name, "", "anna")
    [build] = day.queue(1, seconds=3600.0)
    day.minutes(1)
    assert build.node == node.name
    instance.protected = False
    day.fleet.agents.begins_anew(instance)
    assert instance.alive()
    assert build.ended is None


def test_a_person_s_mark_on_a_given_up_agent_keeps_it_until_it_is_taken_away():
    day = a_day()
    instance, node = condemned(day)
    day.jenkins.set_offline(node.name, "its disk is evidence, ask Anna", "anna")
    instance.protected = False
    day.minutes(90)
    assert instance.alive()
    assert node.reason == "its disk is evidence, ask Anna"
    assert Reason.MARKED_BY_A_PERSON in {held.reason for held in day.fleet.reports[-1].plan.held}
    day.jenkins.toggle(node.name, "", "anna")
    day.minutes(15)
    assert not instance.alive()


def test_an_agent_whose_pool_left_the_fleet_file_does_not_power_off_under_its_build():
    day = a_day()
    day.minutes(2)
    [build] = day.queue(1, seconds=3600.0)
    day.minutes(8)
    [instance] = day.world.alive()
    smaller = replace(day.fleet.fleet, pools={})
    day.fleet.agents = Agents(day.world, ask_pass(lambda: day.fleet.ports, lambda: smaller))
    day.fleet.agents.register(instance)
    assert instance.alive()
    assert build.ended is None
