"""Time-lines of pipelines that resume long after their controller's restart: until then nothing in Jenkins shows them."""

import pytest

from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind
from autoscaler_workbench.fakes.world.physics import Physics
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory


def a_day(resume_seconds, **facts):
    physics = Physics(resume_from_seconds=resume_seconds, resume_to_seconds=resume_seconds)
    return Day(in_memory(a_pool("cpu", **({"idle_seconds": 60.0} | facts)), physics=physics)).minutes(2)


def restart(day):
    day.jenkins.restart()
    return day


@pytest.mark.parametrize("resume_seconds", [1.0, 60.0, 180.0, 600.0, 1200.0])
def test_pipelines_go_on_however_late_they_resume(resume_seconds):
    day = a_day(resume_seconds)
    builds = day.queue(6, seconds=5400.0, kind=Kind.PIPELINE)
    day.minutes(10)
    restart(day).minutes(30)
    assert [build.ended for build in builds] == [None] * 6
    day.minutes(70)
    assert [build.ended for build in builds] == [Ended.FINISHED] * 6
    assert day.agents() == 0


def test_a_pipeline_that_began_after_the_last_look_before_the_restart_goes_on():
    day = a_day(1200.0, idle_seconds=300.0)
    day.queue(1, seconds=60.0)
    day.minutes(6)
    [build] = day.queue(1, seconds=3600.0, kind=Kind.PIPELINE)
    day.world.move_to(day.world.timeline.now + 5.0)
    assert build.node is not None, "it began on the agent that stood idle"
    restart(day).minutes(90)
    assert build.ended is Ended.FINISHED


def test_a_pipeline_goes_on_where_the_state_was_lost_with_the_restart():
    day = a_day(1200.0)
    [build] = day.queue(1, seconds=3600.0, kind=Kind.PIPELINE)
    day.minutes(10)
    day.fleet.state.records.clear()
    day.fleet.state.memory = type(day.fleet.state.memory)(version=day.fleet.state.memory.version)
    restart(day).minutes(90)
    assert build.ended is Ended.FINISHED


def test_agents_whose_builds_the_restart_ended_go_once_nothing_can_resume_on_them():
    day = a_day(1.0)
    day.queue(2, seconds=3600.0)
    day.minutes(10)
    restart(day).minutes(45)
    assert day.agents() == 0


def test_a_run_that_never_resumes_keeps_its_agent_for_no_longer_than_the_resume_timeout():
    """Jenkins lists it as running, and nothing ever asks for its node again."""
    day = a_day(80_000.0)
    day.queue(1, seconds=3600.0, kind=Kind.PIPELINE)
    day.minutes(10)
    restart(day).minutes(110)
    assert day.agents() == 1
    day.minutes(25)
    assert day.agents() == 0


def test_a_pipeline_goes_on_though_jenkins_answered_nobody_when_its_turn_to_resume_came():
    day = a_day(90.0)
    [build] = day.queue(1, seconds=3600.0, kind=Kind.PIPELINE)
    day.minutes(10)
    restart(day).minutes(1)
    day.jenkins.up = "starting"
    day.minutes(2)
    day.jenkins.up = "up"
    day.minutes(1)
    assert build in day.jenkins.nodes[build.node].builds.values()
    day.minutes(90)
    assert (build.ended, day.agents()) == (Ended.FINISHED, 0)


def test_a_second_restart_loads_a_pipeline_anew():
    day = a_day(600.0)
    [build] = day.queue(1, seconds=3600.0, kind=Kind.PIPELINE)
    day.minutes(10)
    restart(day).minutes(9)
    restart(day).minutes(9)
    assert day.jenkins.nodes[build.node].builds == {}
    day.minutes(2)
    assert build in day.jenkins.nodes[build.node].builds.values()
