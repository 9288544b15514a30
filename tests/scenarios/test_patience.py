"""Time-lines of jobs that do not wait for an agent: another node takes them, or they leave the queue. Agents are for those that do wait."""

import pytest

from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from support.builders import a_pool
from support.timeline import Day
from support.worlds import a_world_node, in_memory

FACTS = {"max_agents": 40, "idle_seconds": 600.0, "queue_maturity_seconds": 0.0, "boot_seconds": 360.0, "boot_timeout_seconds": 1800.0}
IDLE = "hudson.slaves.OfflineCause$IdleOfflineCause"


def a_day(**facts):
    return Day(in_memory(a_pool("cpu", **FACTS | facts), max_agents=200, max_launches_per_hour=1000)).minutes(3)


def launched(day):
    return len(day.world.ec2.instances)


def begun(builds):
    return sum(build.started_at is not None for build in builds)


def messages(day):
    return [message for message in day.fleet.notifier.sent if message.about.startswith("patience/")]


def submit(day, leaves_after=None, kind=Kind.PIPELINE, seconds=120.0):
    """Queue one build; if none has begun by then, its time-out takes it from the queue."""
    build = day.jenkins.submit("probe", "cpu", seconds, kind=kind)

    def time_out():
        if build.started_at is None and build.ended is None:
            day.jenkins.abort(build)

    if leaves_after is not None:
        day.world.timeline.after(leaves_after, time_out)
    return build


def every_forty_minutes(day, count, leaves_after=None, on_demand=None, kind=Kind.PIPELINE):
    """Queue a build each 37 to 45 minutes. ``on_demand``: a node that Jenkins connects once a job has waited a minute, and lets go idle."""
    builds = []
    for number in range(count):
        builds.append(submit(day, leaves_after, kind))
        for minute in range(37 + number * 5 % 9):
            if on_demand is not None:
                bring(day, on_demand, minute)
            day.minutes(1)
    return builds


def bring(day, node, minute):
    waits = any(b.started_at is None and day.world.timeline.now - b.queued_at >= 60 for b in day.jenkins.queue)
    if waits and not node.connected:
        node.cause, node.reason = None, ""
        day.jenkins.connect(node.name)
    elif node.connected and not node.builds and minute > 15:
        day.jenkins.disconnect(node.name)
        node.cause, node.reason = IDLE, "idle"


def an_on_demand_node(day):
    node = a_world_node("rack-1", "cpu", connected=False, survives_reload=True, cause=IDLE, reason="idle")
    day.jenkins.add_node(node)
    return node


@pytest.mark.parametrize("kind", [Kind.FREESTYLE, Kind.PIPELINE])
def test_jobs_that_leave_the_queue_before_an_agent_boots_cost_five_launches(kind):
    day = a_day()
    builds = every_forty_minutes(day, 12, leaves_after=300.0, kind=kind)
    assert begun(builds) == 0
    assert launched(day) == 5
    [message] = messages(day)
    assert "left the queue" in message.text
    assert "operations.md#patience" in message.text


@pytest.mark.parametrize("kind", [Kind.FREESTYLE, Kind.PIPELINE])
def test_jobs_that_a_node_on_demand_takes_cost_five_launches(kind):
    day = a_day()
    builds = every_forty_minutes(day, 12, on_demand=an_on_demand_node(day), kind=kind)
    assert {build.node for build in builds} == {"rack-1"}
    assert launched(day) == 5
    [message] = messages(day)
    assert "since node rack-1 took such jobs first" in message.text


def test_why_and_the_queue_tell_how_long_a_job_must_wait_and_what_takes_such_jobs():
    day = a_day()
    every_forty_minutes(day, 6, on_demand=an_on_demand_node(day))
    del day.jenkins.nodes["rack-1"]
    build = submit(day)
    day.minutes(1)
    assert "once it has waited 3 min, since node rack-1 took such jobs first" in day.why(build.job)[0]
    assert (
        "Agents are launched for jobs of cpu on main only once these have waited 3 min, since node rack-1 took such jobs first"
        in day.why("cpu")
    )


def test_jobs_that_wait_for_longer_are_served_and_end_patience():
    day = a_day()
    every_forty_minutes(day, 6, on_demand=an_on_demand_node(day))
    del day.jenkins.nodes["rack-1"]
    builds = every_forty_minutes(day, 8)
    waits = [build.started_at - build.queued_at for build in builds]
    boot = 1.25 * FACTS["boot_seconds"]
    assert max(waits) <= 180 + 60 + boot  # what they must wait for, a look, and a slow boot
    assert waits[-1] <= 60 + boot
    day.minutes(24 * 60)
    assert [message.subject.partition("] ")[2][:5] for message in messages(day)][1:] == ["over:"]


def test_free_executors_of_ours_take_jobs_at_once_all_the_same():
    day = a_day()
    every_forty_minutes(day, 6, leaves_after=300.0)
    first = submit(day)
    while first.ended is None:
        day.minutes(1)
    second = submit(day)
    day.minutes(1)
    assert second.started_at is not None


def test_a_person_who_clears_a_queue_of_thirty_changes_nothing():
    day = a_day()
    builds = [submit(day) for _ in range(30)]
    day.minutes(3)
    before = launched(day)
    assert before >= 10
    for build in builds:
        day.jenkins.abort(build)
    day.minutes(30)
    build = submit(day)
    day.minutes(1)
    assert launched(day) == before + 1
    day.minutes(9)
    assert build.started_at is not None
    assert not messages(day)


def test_a_static_node_that_takes_jobs_while_no_agent_boots_is_no_reason_to_wait():
    day = a_day(wait_usd_per_hour=0.01)
    day.jenkins.add_node(a_world_node("static-1", "cpu", executors=1, survives_reload=True))
    for _ in range(30):
        submit(day, seconds=90.0)
        day.minutes(2)
    assert not messages(day)
