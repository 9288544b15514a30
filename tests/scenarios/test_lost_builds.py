"""Time-lines of builds whose agents go: which of them are lost, and are run again once."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.plan import RunAgain
from autoscaler.domain.facts.reasons import Reason
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind, Stopper
from support.lost import FIRM, a_day, answers, builds, define, instance_of, running


def test_nothing_is_run_again_unless_the_fleet_file_says_so():
    day = a_day(rerun=None)
    _, instance = running(day, define(day))
    day.world.ec2.interrupt(instance)
    day.minutes(20)
    assert builds(day) == [(1, Ended.KILLED)]
    assert (day.fleet.state.reruns, day.fleet.state.memory.lost) == ({}, {})


def test_a_build_that_spot_takes_is_run_again_once_with_its_parameters():
    day = a_day()
    jobs = define(day, "job", "REF", "MODE")
    lost, instance = running(day, jobs, given={"REF": "main & 'so' 日本", "MODE": ""})
    day.world.ec2.interrupt(instance)
    day.minutes(45)
    assert builds(day) == [(1, Ended.KILLED), (2, Ended.FINISHED)]
    again = day.jenkins.builds_of["job"][1]
    assert again.started_with.parameters == lost.started_with.parameters
    assert again.started_with.users == ("autoscaler",)
    assert answers(day) == [("job/job/1", "started", 1)]
    [step] = day.done(RunAgain)
    assert (step.job, step.pool, step.reason) == ("job", "cpu", Reason.LOST_BUILD)
    assert day.failed == 0


def ends(day, build, instance):
    day.world.ec2.end(instance)


def is_stopped(day, build, instance):
    day.world.ec2.stop(instance.id)


def is_cut_off(day, build, instance):
    """A kernel panic, or somebody pulled the plug of its network: EC2 shows it running, and it never comes back."""
    day.jenkins.disconnect(build.node, killed_by="a test")


def is_stopped_and_ended(day, build, instance):
    """Somebody stops it by hand, sees a pipeline wait for it in vain, and terminates it."""
    day.world.ec2.stop(instance.id)
    day.world.timeline.after(600.0, lambda: day.world.ec2.end(instance))


@pytest.mark.parametrize("restart", [False, True], ids=["", "and Jenkins restarts"])
@pytest.mark.parametrize(
    ("kind", "happens"),
    [
        (Kind.FREESTYLE, ends),
        (Kind.FREESTYLE, is_stopped),
        (Kind.FREESTYLE, is_cut_off),
        (Kind.PIPELINE, ends),
        (Kind.PIPELINE, is_stopped_and_ended),
    ],
)
def test_whatever_takes_the_agent_the_build_is_run_again_once(happens, kind, restart):
    day = a_day(offerings=(FIRM,))
    lost, instance = running(day, define(day, kind=kind))
    happens(day, lost, instance)
    if restart:
        day.jenkins.restart()
    day.minutes(80)
    assert [build.ended for build in day.jenkins.builds_of["job"][1:]] == [Ended.FINISHED]
    assert answers(day) == [("job/job/1", "started", 1)]


def waiting_for_its_machine(happens, *, waits_for_input):
    day = a_day(offerings=(FIRM,))
    pipeline, instance = running(day, define(day, kind=Kind.PIPELINE))
    pipeline.waits_for_input = waits_for_input
    happens(day, pipeline, instance)
    return day, pipeline


@pytest.mark.parametrize("happens", [is_stopped, is_cut_off])
def test_a_pipeline_that_waits_for_its_machine_is_named_and_not_run_again_beside_itself(happens):
    day, _ = waiting_for_its_machine(happens, waits_for_input=True)
    day.minutes(20)
    assert builds(day) == [(1, None)]
    held = [held for held in day.fleet.reports[-1].plan.held if held.reason is Reason.MAY_RESUME]
    assert [held.detail.partition(":")[0] for held in held] == ["job"]


@pytest.mark.parametrize("happens", [is_stopped, is_cut_off])
def test_a_step_whose_agent_is_away_is_given_up_by_jenkins_after_five_minutes_and_run_again(happens):
    day, pipeline = waiting_for_its_machine(happens, waits_for_input=False)
    day.minutes(4)
    assert (builds(day), answers(day)) == ([(1, None)], [])
    day.minutes(4)
    assert (pipeline.ended, pipeline.stopped_by) == (Ended.KILLED, Stopper.AGENT_AWAY)
    assert answers(day) == [("job/job/1", "started", 1)]


def test_a_pipeline_whose_agent_dies_while_its_shell_starts_has_failed_at_once_and_is_run_again():
    day = a_day(min_agents=1).minutes(6)
    pipeline = define(day, kind=Kind.PIPELINE).build("job", None, "somebody")
    while pipeline.started_at is None:
        day.world.timeline.sleep(1.0)
    day.fleet.scale_down()
    day.jenkins.disconnect(pipeline.node, killed_by="a test")
    assert (pipeline.ended, pipeline.stopped_by) == (Ended.KILLED, None)
    day.minutes(4)
    assert answers(day) == [("job/job/1", "started", 1)]


@pytest.mark.parametrize("seconds_to_the_look", [8.0, 30.0], ids=["agents are not back yet", "agents are back"])
def test_a_build_that_a_restart_of_jenkins_ended_is_not_lost(seconds_to_the_look):
    day = a_day()
    running(day, define(day))
    day.world.timeline.sleep(60.0 - seconds_to_the_look)
    day.jenkins.restart()
    day.world.timeline.sleep(seconds_to_the_look)
    day.fleet.scale_down()
    day.minutes(20)
    assert builds(day) == [(1, Ended.RESTARTED)]
    assert (answers(day), day.fleet.state.memory.lost) == ([], {})


def test_a_pipeline_whose_agent_comes_back_goes_on_and_is_not_run_again():
    day = a_day()
    pipeline, _ = running(day, define(day, kind=Kind.PIPELINE))
    day.jenkins.disconnect(pipeline.node)
    day.minutes(2)
    assert "job/job/1" in {lost.run for lost in day.fleet.state.memory.lost.values()}
    day.jenkins.connect(pipeline.node)
    day.minutes(40)
    assert builds(day) == [(1, Ended.FINISHED)]
    assert (answers(day), day.fleet.state.memory.lost) == ([], {})


def test_a_pipeline_whose_agent_comes_back_and_that_fails_there_before_the_next_look_is_not_run_again():
    day = a_day()
    pipeline, _ = running(day, define(day, kind=Kind.PIPELINE))
    day.jenkins.disconnect(pipeline.node)
    day.minutes(2)
    day.world.timeline.sleep(40.0)
    day.jenkins.connect(pipeline.node)
    day.world.timeline.sleep(8.0)
    day.jenkins.nodes[pipeline.node].fails_builds = True
    day.jenkins._end(pipeline, Ended.FINISHED)
    day.minutes(20)
    assert (pipeline.succeeded, len(builds(day))) == (False, 1)
    assert (answers(day), day.fleet.state.memory.lost) == ([], {})


@pytest.mark.parametrize("succeeds", [True, False])
def test_a_pipeline_that_goes_on_elsewhere_is_not_lost(succeeds):
    """As with ``retry(conditions: [agent()])``: what becomes of it there is its own doing, whether it succeeds or fails."""
    day = a_day()
    pipeline, instance = running(day, define(day, kind=Kind.PIPELINE))
    day.world.ec2.end(instance)
    day.minutes(3)
    retried = day.jenkins.submit("job", "cpu", 900.0, kind=Kind.PIPELINE, number=pipeline.number)

    def is_caught(build):
        build.stopped_by, build.succeeded = None, True

    pipeline.on_end = is_caught
    day.minutes(10)
    day.jenkins.nodes[retried.node].fails_builds = not succeeds
    day.minutes(20)
    assert (pipeline.ended, retried.ended, retried.succeeded) == (Ended.KILLED, Ended.FINISHED, succeeds)
    assert len(day.jenkins.builds_of["job"]) == 2
    assert (answers(day), day.fleet.state.memory.lost) == ([], {})


def test_a_build_that_failed_before_its_agent_went_is_not_lost():
    day = a_day()
    build, instance = running(day, define(day))
    day.world.timeline.sleep(5.0)
    day.jenkins.nodes[build.node].fails_builds = True
    day.jenkins._end(build, Ended.FINISHED)
    day.world.timeline.sleep(20.0)
    day.world.ec2.end(instance)
    day.minutes(10)
    assert build.succeeded is False
    assert builds(day) == [(1, Ended.FINISHED)]
    assert (answers(day), day.fleet.state.memory.lost) == ([], {})


def test_a_build_that_a_person_aborted_is_not_lost():
    day = a_day()
    build, instance = running(day, define(day))
    day.world.ec2.interrupt(instance)
    day.world.timeline.sleep(100.0)
    day.jenkins.abort(build)
    day.minutes(10)
    assert builds(day) == [(1, Ended.ABORTED)]
    assert answers(day) == []


def test_a_build_that_still_succeeded_is_not_lost():
    day = a_day()
    define(day, seconds=400.0)
    build = day.fleet.apis["main"].jobs.build("job", None, "somebody")
    while build.started_at is None:
        day.minutes(1)
    day.world.move_to(build.started_at + 290.0)  # the machine has two minutes left, the build 110 s
    day.world.ec2.interrupt(instance_of(day, build))
    day.minutes(10)
    assert build.succeeded
    assert answers(day) == []


def test_a_matrix_is_run_again_as_a_whole_once_though_it_lost_two_of_its_configurations():
    """A configuration cannot be started by itself; the matrix waits for all of them, and has failed with the lost ones."""
    day = a_day(offerings=(FIRM,), executors=2)
    jobs = define(day, "m", "REF")
    jobs.jobs["m"] = replace(jobs.jobs["m"], configurations=("os=linux,gpu=yes", "os=linux,gpu=no", "os=bsd"))
    jobs.build("m", {"REF": "x"}, "somebody")
    day.minutes(6)
    parts = [build for name, held in day.jenkins.builds_of.items() if name.startswith("m/") for build in held]
    lost = instance_of(day, parts[0])
    assert [build.ended for build in parts] == [None] * 3
    day.world.ec2.end(lost)
    day.minutes(15)
    assert (answers(day), [build.ended for build in day.jenkins.builds_of["m"]]) == ([], [None]), "it goes on with the others"
    day.minutes(60)
    assert [(build.ended, build.succeeded) for build in day.jenkins.builds_of["m"]] == [(Ended.FINISHED, False), (Ended.FINISHED, True)]
    assert answers(day) == [("job/m/1", "started", 1)]
    assert day.jenkins.builds_of["m"][1].started_with.parameters == (("REF", "x"),)
