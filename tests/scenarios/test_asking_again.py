"""Time-lines of agents whose process ends and that ask anew who they are: at any time, not only at boot."""

from autoscaler.domain.facts.snapshot import RecordState
from autoscaler_workbench.fakes.world.ec2.listing import Listing
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory


def a_day():
    return Day(in_memory(a_pool("cpu", idle_seconds=300.0, boot_timeout_seconds=600.0)))


def busy_with_a_pipeline(day, seconds):
    day.minutes(2)
    [build] = day.queue(1, seconds=seconds, kind=Kind.PIPELINE)
    day.minutes(6)
    [instance] = day.world.alive()
    assert day.jenkins.nodes[build.node].connected
    return build, instance


def test_an_agent_whose_process_restarts_is_told_the_same_and_its_pipeline_goes_on():
    day = a_day()
    build, instance = busy_with_a_pipeline(day, 1800.0)
    build.waits_for_input = True  # a step such as sh is aborted after five minutes without its agent
    nodes = day.nodes()
    for _ in range(3):
        day.fleet.agents.restarts(instance)
        assert not day.jenkins.nodes[build.node].connected
        day.minutes(3)
        assert day.jenkins.nodes[build.node].connected
    assert (day.nodes(), [i.id for i in day.world.alive()]) == (nodes, [instance.id])
    day.minutes(30)
    assert (build.ended, build.killed_by) == (Ended.FINISHED, "")
    assert day.agents() == 0


def test_one_that_nobody_answers_for_longer_than_a_boot_takes_goes_on_asking():
    """The boot deadline is for instances that were never told who they are: this one has work."""
    day = a_day()
    build, instance = busy_with_a_pipeline(day, 3600.0)
    build.waits_for_input = True  # a step such as sh is aborted after five minutes without its agent
    day.fleet.faults.dice = Fault
    day.fleet.agents.restarts(instance)
    day.world.move_to(day.world.timeline.now + 900.0)
    assert instance.alive()
    day.fleet.faults.dice = None
    day.minutes(60)
    assert (build.ended, build.killed_by) == (Ended.FINISHED, "")


def test_one_whose_controller_is_down_comes_back_with_it():
    day = a_day()
    build, instance = busy_with_a_pipeline(day, 1200.0)
    build.waits_for_input = True  # a step such as sh is aborted after five minutes without its agent
    day.fleet.agents.restarts(instance)
    day.jenkins.restart()
    day.minutes(40)
    assert (build.ended, build.killed_by) == (Ended.FINISHED, "")


def test_one_that_ec2_does_not_show_for_a_while_goes_on_asking():
    """EC2's empty answer proves nothing: what asks with its role's own credentials lives."""
    day = a_day()
    build, instance = busy_with_a_pipeline(day, 3600.0)
    build.waits_for_input = True  # a step such as sh is aborted after five minutes without its agent
    day.world.ec2.listing = Listing(empty_until=day.world.timeline.now + 300.0)
    day.fleet.agents.restarts(instance)
    day.world.move_to(day.world.timeline.now + 300.0)
    assert instance.alive()
    day.minutes(70)
    assert (build.ended, build.killed_by) == (Ended.FINISHED, "")


def test_one_whose_record_was_restored_as_it_was_before_it_registered_is_an_agent_again_within_minutes():
    """It asks every five minutes while it is connected. It counted as the one agent that tries the controller (hostile world 3100295)."""
    day = a_day()
    day.fleet.agents.all_ask_on = True
    day.minutes(2).queue(1, seconds=3600.0)
    day.minutes(1)
    [requested] = day.fleet.state.records.values()
    day.minutes(6)
    [registered] = day.fleet.state.records.values()
    day.fleet.state.records[requested.instance_id] = requested
    day.minutes(6)
    [record] = day.fleet.state.records.values()
    assert (requested.state, record.state, record.node) == (RecordState.REQUESTED, RecordState.REGISTERED, registered.node)


def test_one_that_was_given_up_hears_so_and_powers_itself_off():
    day = a_day()
    day.minutes(2).queue(1, seconds=60.0)
    day.minutes(6)
    [instance] = day.world.alive()
    instance.protected = True  # EC2 refuses to terminate it
    day.minutes(20)
    assert [str(record.state) for record in day.fleet.state.records.values()] == ["condemned"]
    assert instance.alive()
    day.fleet.agents.restarts(instance)
    day.minutes(1)
    assert not instance.alive()
    day.minutes(10)
    assert (day.nodes(), day.fleet.state.records) == ([], {})


def test_a_stranger_by_now_that_was_registered_once_does_not_power_itself_off():
    """A 403 may be of AWS, or of a tag that somebody took away: its builds go on, and it asks again."""
    day = a_day()
    _, instance = busy_with_a_pipeline(day, 60.0)
    day.minutes(2)
    instance.tags["autoscaler:fleet"] = "another"
    day.fleet.agents.restarts(instance)
    day.world.move_to(day.world.timeline.now + 10)
    assert instance.alive()
