"""Time-lines of a drained agent whose controller restarts: the build resumes and ends, and then the agent goes after all."""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.memory import Memory
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind
from support.builders import a_mark, a_pool
from support.timeline import Day
from support.worlds import in_memory

FINAL = [MarkClass.OPERATOR, MarkClass.OUTDATED, MarkClass.QUARANTINE]


@pytest.fixture
def day():
    return Day(in_memory(a_pool("cpu", idle_seconds=600.0))).minutes(2)


def drain(day, kind):
    [node] = day.nodes()
    day.jenkins.set_offline(node, a_mark(kind, "earlier").text, "bot")
    return day.jenkins.nodes[node]


@pytest.mark.parametrize("kind", FINAL)
def test_a_pipeline_on_a_drained_agent_goes_on_after_a_restart_and_the_agent_goes_when_it_is_done(day, kind):
    [build] = day.queue(1, seconds=3600.0, kind=Kind.PIPELINE)
    day.minutes(10)
    [instance] = day.world.alive()
    drain(day, kind)
    day.minutes(2)
    day.jenkins.restart()
    day.minutes(15)
    assert build.resumes_on is None
    assert instance.alive()
    day.minutes(60)
    assert build.ended is Ended.FINISHED
    assert not instance.alive()
    assert day.nodes() == []


def test_what_was_drained_by_hand_is_drained_again_once_the_build_has_resumed(day):
    """Not only when it is idle: it must take no further build meanwhile, or it would never be."""
    [build] = day.queue(1, seconds=7200.0, kind=Kind.PIPELINE)
    day.minutes(10)
    node = drain(day, MarkClass.OPERATOR)
    day.minutes(2)
    day.jenkins.restart()
    day.minutes(15)
    assert build.ended is None
    assert ":operator:" in node.reason


def test_a_freestyle_build_that_the_restart_ended_does_not_keep_its_drained_agent_for_ever(day):
    day.queue(1, seconds=3600.0)
    day.minutes(10)
    drain(day, MarkClass.OPERATOR)
    day.minutes(2)
    day.jenkins.restart()
    day.minutes(15)
    assert day.agents() == 0
    assert day.nodes() == []


def test_a_dead_machines_node_that_no_record_knows_is_not_kept_for_ever_by_the_pipeline_that_waits_for_it(day):
    """The state was lost as well: nothing but the node's own description says whose it was."""
    [build] = day.queue(1, seconds=3600.0, kind=Kind.PIPELINE)
    day.minutes(10)
    [instance] = day.world.alive()
    instance.interrupted = True
    day.fleet.state.records.clear()
    day.jenkins.restart()
    day.world.ec2.end(instance)
    day.minutes(30)
    assert build.ended is Ended.KILLED
    assert (day.agents(), day.nodes()) == (0, [])


def test_an_agent_that_never_comes_back_after_a_restart_does_not_run_for_ever(day):
    day.queue(1, seconds=3600.0)
    day.minutes(10)
    [instance] = day.world.alive()
    day.jenkins.restart()
    day.jenkins.disconnect(instance.tags["Name"])
    day.minutes(50)
    assert not instance.alive()
    assert instance.tags["Name"] not in day.nodes()


@pytest.mark.parametrize("kind", FINAL)
def test_a_pipeline_on_a_drained_agent_goes_on_even_where_the_state_was_lost_with_the_restart(day, kind):
    [build] = day.queue(1, seconds=1800.0, kind=Kind.PIPELINE)
    day.minutes(10)
    drain(day, kind)
    day.minutes(2)
    day.fleet.state.records.clear()
    day.fleet.state.memory = replace(Memory(), version=day.fleet.state.memory.version)
    day.jenkins.restart()
    day.minutes(60)
    assert build.ended is Ended.FINISHED
    assert (day.agents(), day.nodes()) == (0, [])
