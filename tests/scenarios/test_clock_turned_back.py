"""Time-lines on which something begins while a clock is ahead: once it is right again, that lasts no longer than it does otherwise."""

from math import inf

import pytest

from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory

AHEAD = pytest.mark.parametrize("ahead", [0.0, 7200.0, 31 * 86_400.0], ids=["right", "two hours ahead", "a month ahead"])
_DISK = "hudson.node_monitors.DiskSpaceMonitorDescriptor$DiskSpace"


def a_day(minutes=10, **facts):
    """An agent has had a build, and stands idle: it has stayed connected for so long that its boot is over."""
    pool = a_pool("cpu", **({"idle_seconds": 3600.0, "queue_maturity_seconds": 0.0, "max_agents": 5} | facts))
    day = Day(in_memory(pool)).minutes(3)
    day.queue(1, seconds=60.0)
    return day.minutes(minutes)


def passes_by(day, ahead, minutes=1):
    """The clock is wrong for so many minutes."""
    day.fleet.skew_seconds = ahead
    day.minutes(minutes)
    day.fleet.skew_seconds = 0.0


def its_node(day):
    [instance] = day.world.alive()
    return instance.tags["Name"]


def is_marked(day, name):
    node = day.jenkins.nodes[name]
    node.temporarily_offline, node.cause, node.reason, node.cause_at = True, _DISK, "0.4GB left", day.world.timeline.now


def is_hidden(day, name):
    day.jenkins.disconnect(name)
    for instance in day.world.alive():
        instance.visible_at = inf
    day.world.ec2.changes += 1


def shows_for_ever(day, name, job="job-0"):
    """A build ends, and its executor goes on showing it."""
    node, build, end = day.jenkins.nodes[name], day.jenkins.submit(job, "cpu", 120.0), day.jenkins._end

    def ends(one, how):
        end(one, how)
        if one is build:
            node.builds[one.executor] = one

    day.jenkins._end = ends


@AHEAD
@pytest.mark.parametrize(
    ("begins", "looks", "limit"),
    [
        (lambda day, name: day.jenkins.delete_node(name), 1, 5),
        (lambda day, name: day.jenkins.disconnect(name), 1, 15),
        (lambda day, _: day.jenkins.restart(), 3, 40),
        (is_marked, 1, 20),
        (is_hidden, 1, 140),
        (shows_for_ever, 1, 120),
    ],
    ids=[
        "its node is deleted",
        "it is lost",
        "Jenkins restarts",
        "a monitor marks it",
        "EC2 shows it no more",
        "its executor shows a build",
    ],
)
def test_an_agent_goes_as_soon_as_it_does_by_a_clock_that_is_right(begins, looks, limit, ahead):
    day = a_day(6, idle_seconds=300.0) if looks > 1 else a_day()
    begins(day, its_node(day))
    passes_by(day, ahead, looks)
    day.minutes(limit)
    assert day.fleet.state.records == {}


@AHEAD
def test_an_agent_that_never_boots_goes_at_its_deadline(ahead):
    day = a_day()
    day.world.ec2.on_running = lambda _instance: None
    day.queue(9, seconds=600.0)
    passes_by(day, ahead)
    hung = [instance for instance in day.world.alive() if "autoscaler:node" not in instance.tags]
    assert hung
    day.minutes(25)
    assert [instance.id for instance in hung if instance.alive()] == []


@AHEAD
def test_a_static_node_is_free_soon_after_its_machine_was_ended(ahead):
    """Its record was closed two hours later, and nobody could use it until then (hostile world 1300167)."""
    day = Day(in_memory(a_pool("cpu", idle_seconds=300.0, queue_maturity_seconds=0.0), slots={"slot-0": ("cpu",)})).minutes(3)
    day.queue(1, seconds=60.0)
    day.minutes(20)
    while day.world.alive():
        passes_by(day, ahead)
    day.minutes(8)
    assert day.fleet.state.records == {}
    assert not day.jenkins.nodes["slot-0"].temporarily_offline


@AHEAD
def test_a_job_that_an_agent_does_not_take_gets_another_one(ahead):
    day = a_day()
    name, free_for = its_node(day), day.jenkins.free_for
    day.jenkins.free_for = lambda build: [node for node in free_for(build) if node.name != name]
    [build] = day.queue(1, seconds=60.0)
    passes_by(day, ahead)
    day.minutes(15)
    assert build.started_at is not None


@AHEAD
def test_people_are_told_within_an_hour_of_a_node_that_a_build_keeps_after_its_machine_has_gone(ahead):
    """Its record stays with it, and nobody was told of it for a month (hostile world 3100102)."""
    day = a_day()
    name = its_node(day)
    shows_for_ever(day, name, job="of unknown length")
    passes_by(day, ahead, 5)
    [instance] = day.world.alive()
    day.world.ec2.end(instance)
    passes_by(day, ahead, 5)
    day.minutes(65)
    assert f"[f] {name} of cpu: node-left too long" in [message.subject for message in day.fleet.notifier.sent]


@AHEAD
def test_what_people_were_told_of_is_over_once_it_is(ahead):
    day = a_day()
    day.world.ec2.refuse = "InvalidParameterValue", "of the template"
    day.queue(9, seconds=600.0)
    passes_by(day, ahead, 20)
    day.world.ec2.refuse = None
    day.minutes(40)
    told = [message.subject for message in day.fleet.notifier.sent if "EC2 refuses launches" in message.subject]
    assert (told[0], told[-1]) == ("[f] EC2 refuses launches of cpu", "[f] over: EC2 refuses launches of cpu")
