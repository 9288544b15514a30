"""Time-lines of nodes that a person deletes under their agents."""

from dataclasses import replace

import pytest

from autoscaler_workbench.fakes.identity import ask_pass
from autoscaler_workbench.fakes.world.faults import Fault
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory


@pytest.fixture
def day():
    day = Day(in_memory(a_pool("cpu", idle_seconds=3600.0)))
    day.minutes(2).queue(1, seconds=60.0)
    day.minutes(6)
    return day


def test_an_agent_whose_node_was_deleted_goes_and_another_one_comes_where_jobs_wait(day):
    [instance] = day.world.alive()
    day.jenkins.delete_node(instance.tags["Name"])
    day.fleet.agents.register(instance)  # its connection has ended, so it asks
    assert day.nodes() == []
    [build] = day.queue(1, seconds=60.0)
    day.minutes(12)
    assert not instance.alive()
    assert build.node not in {None, instance.tags["Name"]}


def test_one_that_was_made_and_not_yet_written_down_is_found_and_not_made_twice(day):
    """Cut off after its node was made: it asks again, and goes on."""
    [instance] = day.world.alive()
    record = day.fleet.state.records[instance.id]
    day.fleet.state.records[instance.id] = replace(record, node_life=None)
    day.fleet.faults.plan(Fault("state change_record", after=True, times=1))
    ask = ask_pass(lambda: day.fleet.ports, lambda: day.fleet.fleet)
    for _ in range(2):
        ask(instance, ())
    assert day.fleet.state.records[instance.id].node_life == record.life == 0
    assert day.nodes() == [instance.tags["Name"]]
