"""Time-lines on which Jenkins' executors go on showing builds that have ended: the agents end, and nothing that runs does."""

import pytest

from autoscaler.domain.facts.orders import DrainNodes
from autoscaler.domain.facts.plan import Cordon, Terminate
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory

TOLD = "[f] executors of main show builds that have ended"
ASKED_AFTER_MINUTES = 100  # ten times what the job takes


def a_day(kind=Kind.FREESTYLE, history=3, **facts):
    """The job has run a few times for ten minutes each."""
    given = {"max_agents": 2, "idle_seconds": 900.0, "queue_maturity_seconds": 0.0} | facts
    day = Day(in_memory(a_pool("cpu", **given))).minutes(3)
    for _ in range(history):
        day.queue(2, kind=kind)
        day.minutes(15)
    return day


def zombies(day, count=2, kind=Kind.FREESTYLE, **facts):
    builds = day.queue(count, kind=kind, **facts)
    for build in builds:
        build.stays_on_executor = True
    day.minutes(15)
    assert {build.ended for build in builds} == {Ended.FINISHED}
    return builds


def subjects(day):
    return [message.subject for message in day.fleet.notifier.sent]


def drain(day, node):
    order = DrainNodes(nodes=(node,), reason="x", request_id=None)
    day.order(order, by_a_person=True)


@pytest.mark.parametrize("kind", [Kind.FREESTYLE, Kind.PIPELINE])
def test_agents_whose_builds_have_ended_end_and_others_serve(kind):
    """They were busy for ever: paid, two of two places taken, and a job waited for a day."""
    day = a_day(kind)
    builds = zombies(day, kind=kind)
    job = day.jenkins.submit("next", "cpu", 300.0, kind=kind)
    day.minutes(ASKED_AFTER_MINUTES + 20)
    assert job.ended is Ended.FINISHED
    assert {build.node for build in builds} & day.jenkins.nodes.keys() == set()
    assert {step.reason for step in day.done(Terminate) if step.ended} == {"build-has-ended"}
    assert TOLD in subjects(day)
    [told] = [message for message in day.fleet.notifier.sent if message.subject == TOLD]
    assert all(f"{build.run_path.rstrip('/')} on {build.node}" in told.text for build in builds)
    assert [step for step in day.done(Cordon) if step.reason == "far-overdue"] == []
    assert max(seconds for samples in day.fleet.state.learned["main"].samples.values() for seconds in samples) < 700.0
    day.minutes(120)
    assert f"[f] over: {TOLD[4:]}" in subjects(day)


def test_what_was_drained_for_long_is_asked_however_long_its_job_takes():
    day = a_day(drain_timeout_seconds=1800.0)
    [build] = zombies(day, 1)
    drain(day, build.node)
    day.minutes(30 + 15)
    assert build.node not in day.jenkins.nodes


def test_a_job_that_nobody_knows_is_asked_after_twelve_hours():
    day = a_day(history=0)
    [build] = zombies(day, 1)
    day.minutes(11 * 60)
    assert build.node in day.jenkins.nodes
    day.minutes(90)
    assert build.node not in day.jenkins.nodes


@pytest.mark.long
def test_what_really_runs_goes_on_however_long():
    day = a_day(drain_timeout_seconds=1800.0)
    builds = day.queue(2, seconds=30 * 3600.0, kind=Kind.PIPELINE)
    day.minutes(20)
    drain(day, builds[0].node)
    day.hours(28)
    assert [build.ended for build in builds] == [None, None]
    day.minutes(3 * 60)
    assert [build.ended for build in builds] == [Ended.FINISHED] * 2


def test_a_jenkins_that_does_not_tell_whether_a_run_is_in_progress_must_say_so_for_an_hour():
    day = a_day()
    day.jenkins.tells_in_progress = False
    [build] = zombies(day, 1)
    day.minutes(ASKED_AFTER_MINUTES + 40)
    assert build.node in day.jenkins.nodes
    day.minutes(45)
    assert build.node not in day.jenkins.nodes


@pytest.mark.parametrize("status", [403, 404, 500])
def test_what_jenkins_does_not_show_proves_nothing(status):
    day = a_day()
    [build] = zombies(day, 1)
    day.fleet.faults.plan(Fault("jenkins job", status=status, times=10**6))
    day.hours(24)
    assert build.node in day.jenkins.nodes
    assert TOLD not in subjects(day)


def test_an_agent_whose_other_executors_work_ends_when_their_builds_have():
    day = a_day(executors=2, max_agents=1)
    [build] = zombies(day, 1)
    other = day.jenkins.submit("long", "cpu", 4 * 3600.0, kind=Kind.PIPELINE)
    day.minutes(ASKED_AFTER_MINUTES + 15)
    assert other.node == build.node
    assert any(line.startswith("Jenkins shows job/job-0/") and "that is no work" in line for line in day.why(build.node))
    day.minutes(4 * 60)
    assert other.ended is Ended.FINISHED
    assert build.node not in day.jenkins.nodes


def test_a_build_that_began_beside_it_in_the_last_moment_is_not_killed():
    """The last read of the node allows what has ended, and nothing else."""
    day = a_day(executors=2, max_agents=1)
    [build] = zombies(day, 1)
    begun = []

    def slip_in(call):
        node = day.jenkins.nodes.get(build.node)
        is_condemned = any(record.node == build.node and record.state == "condemned" for record in day.fleet.state.records.values())
        if not begun and call == "jenkins computer" and node is not None and is_condemned:
            begun.append(day.jenkins.submit("late", "cpu", 3600.0, kind=Kind.PIPELINE))
            day.jenkins.begin(begun[0], node)

    day.fleet.faults.meanwhile = slip_in
    day.minutes(ASKED_AFTER_MINUTES + 90)
    assert [late.ended for late in begun] == [Ended.FINISHED]


def test_no_more_than_twenty_runs_are_asked_in_a_look_the_oldest_first():
    day = a_day(max_agents=40)
    for build in (builds := [day.jenkins.submit("job-0", "cpu", 600.0) for _ in range(30)]):
        build.stays_on_executor = True
    asked, [controller] = [], day.fleet.ports.controllers
    ask = controller.whether_ended
    controller.whether_ended = lambda run: asked.append(day.world.timeline.now) or ask(run)
    day.minutes(ASKED_AFTER_MINUTES + 10)
    assert max(asked.count(at) for at in asked) <= 20
    day.minutes(180)
    assert {build.node for build in builds} & day.jenkins.nodes.keys() == set()


def test_what_was_believed_before_a_restart_is_not_believed_after_it():
    day = a_day()
    zombies(day, 1)
    day.minutes(ASKED_AFTER_MINUTES - 12)
    day.jenkins.restart()
    day.minutes(30)
    assert [step for step in day.done(Cordon) if step.reason == "build-has-ended"] == []
    assert TOLD not in subjects(day)
