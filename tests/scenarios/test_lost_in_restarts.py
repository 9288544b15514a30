"""Time-lines of builds whose agents go right before Jenkins restarts: each is run again once, as without a restart, and no other one is."""

from itertools import product

import pytest

from autoscaler.domain.facts.reasons import Reason
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from support.lost import FIRM, RUN_ID, SPOT, a_day, answers, builds, define, instance_of, reasons

GIVEN = {"REF": "main", RUN_ID: ""}
MANNERS = pytest.mark.parametrize("by_force", [False, True], ids=["SIGTERM", "SIGKILL"])


def a_job(day, shape):
    """Define a job of a shape, start a build of it, and wait until it has its agents; return those whose agent will go."""
    declares = () if shape == "freestyle" else tuple(GIVEN)
    jobs = define(day, "job", *declares, configurations=("os=bsd", "os=linux") if shape == "matrix" else ())
    whole = jobs.build("job", GIVEN if declares else None, "somebody")
    day.minutes(6)
    parts = day.jenkins.builds_of["job/os=bsd"] if shape == "matrix" else [whole]
    assert all(build.node and build.ended is None for build in parts)
    return parts[0]


def is_taken(day, build, instance):
    day.world.ec2.interrupt(instance)
    day.world.timeline.sleep(121.0)


def ends(day, build, instance):
    day.world.ec2.end(instance)


def is_stopped(day, build, instance):
    day.world.ec2.stop(instance.id)


def is_killed(day, build, instance):
    """Nothing but Jenkins shows it: EC2's instance runs on."""
    day.jenkins.disconnect(build.node, killed_by="a test")


SHAPES, WAYS = ("freestyle", "with parameters", "matrix"), (is_taken, ends, is_stopped, is_killed)


@MANNERS
@pytest.mark.parametrize("seconds", [1.0, 25.0, 60.0], ids=["at once", "half a minute later", "after a look"])
@pytest.mark.parametrize(("shape", "way"), list(product(SHAPES, WAYS)))
def test_what_was_lost_before_a_restart_is_run_again_once_with_its_parameters(shape, way, seconds, by_force):
    day = a_day(offerings=(SPOT,) if way is is_taken else (FIRM,))
    build = a_job(day, shape)
    way(day, build, instance_of(day, build))
    if seconds < 60.0:
        day.world.timeline.sleep(seconds)
    else:
        day.minutes(1)
    assert build.ended is Ended.KILLED
    day.jenkins.restart(by_force=by_force)
    day.minutes(45)
    assert answers(day) == [("job/job/1", "started", 1)]
    assert (builds(day)[1:], reasons(day)) == ([(2, Ended.FINISHED)], [])
    again = day.jenkins.builds_of["job"][1]
    [rerun] = day.fleet.state.reruns.values()
    assert dict(again.started_with.parameters) == ({} if shape == "freestyle" else GIVEN | {RUN_ID: rerun.id})
    assert day.fleet.state.memory.lost == {}


@MANNERS
@pytest.mark.parametrize("shape", SHAPES)
def test_what_a_restart_ended_is_not_lost_if_its_agents_come_back(shape, by_force):
    day = a_day(offerings=(FIRM,))
    build = a_job(day, shape)
    day.jenkins.restart(by_force=by_force)
    day.minutes(30)
    assert build.ended is Ended.RESTARTED
    assert (answers(day), len(builds(day)), day.fleet.state.memory.lost) == ([], 1, {})


@MANNERS
@pytest.mark.parametrize("shape", SHAPES)
def test_an_instance_that_ends_after_its_agent_was_back_runs_no_build_again_that_the_restart_ended(shape, by_force):
    """A build that was not saved is not shown: whether it was lost is in doubt, and a person is told."""
    day = a_day(offerings=(FIRM,))
    build = a_job(day, shape)
    instance = instance_of(day, build)
    day.jenkins.restart(by_force=by_force)
    day.world.timeline.sleep(25.0)  # its agent is back before the next look, and is gone again by then
    day.world.ec2.end(instance)
    day.minutes(30)
    assert len(builds(day)) == 1
    assert reasons(day) == ([Reason.RERUN_IN_DOUBT] if by_force else [])


def test_what_is_lost_in_two_restarts_is_run_again_no_more_often_than_is_allowed():
    """A matrix is not there after a restart by force: how often it was run again is then told by its parameter alone."""
    day = a_day(offerings=(FIRM,))
    build = a_job(day, "matrix")
    for number in (1, 2):
        build = day.jenkins.builds_of["job/os=bsd"][number - 1]
        day.world.ec2.end(instance_of(day, build))
        day.world.timeline.sleep(1.0)
        day.jenkins.restart(by_force=True)
        day.minutes(20)
    assert (len(builds(day)), reasons(day)) == (2, [Reason.LOST_TOO_OFTEN])


def test_a_matrix_that_somebody_deleted_is_left_to_them_though_its_parts_are_there():
    day = a_day(offerings=(FIRM,))
    build = a_job(day, "matrix")
    [whole] = day.jenkins.builds_of["job"]
    day.world.ec2.end(instance_of(day, build))
    for part in day.jenkins.builds_of["job/os=linux"]:
        day.jenkins.abort(part)
    whole.is_unsaved = True  # as after a restart, without one
    day.minutes(20)
    assert (len(day.jenkins.builds_of["job"]), reasons(day)) == (1, [Reason.RERUN_IN_DOUBT])
