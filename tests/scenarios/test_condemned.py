"""Time-lines of agents that were given up and could not go at once: whatever happens to them meanwhile, no build is killed."""

from autoscaler.domain.plan import Terminate
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory
from workbench.world.jenkins import Ended


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


def test_a_build_that_slips_in_between_keeps_the_agent_until_it_is_done():
    day = a_day()
    day.minutes(2).queue(1, seconds=60.0)
    day.minutes(6)
    [instance] = day.world.alive()
    late = []

    def meanwhile(call):
        """As soon as it is given up, and before the last read."""
        if call == "state change_record" and not late:
            day.jenkins.toggle(instance.tags["Name"], "", "anna")
            late.extend(day.queue(1, seconds=1800.0))

    day.fleet.faults.meanwhile = meanwhile
    day.minutes(30)
    assert late[0].ended is None
    assert instance.alive()
    day.minutes(60)
    assert late[0].ended is Ended.FINISHED
    assert not instance.alive()
    assert day.nodes() == []
