"""Time-lines of idle agents that no job which waits can take, under a limit that they fill."""

from dataclasses import replace

import pytest

from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory


def a_day(**facts):
    day = Day(in_memory(a_pool("cpu", labels=frozenset({"linux"}), max_agents=1, idle_seconds=3600.0, boot_seconds=120.0, **facts)))
    day.queue(1, "linux", seconds=60.0)
    day.minutes(8)
    assert day.agents() == 1
    return day


def new_labels_in_the_file(day):
    pool = day.fleet.fleet.pools["cpu"]
    day.fleet.fleet.pools["cpu"] = replace(pool, labels=frozenset({"linux", "docker"}))
    return "linux&&docker"


def labels_changed_by_a_person(day):
    [name] = day.nodes()
    node = day.jenkins.nodes[name]
    node.labels = tuple(label for label in node.labels if label != "linux")
    return "linux"


@pytest.mark.parametrize("minimum", [0, 1])
@pytest.mark.parametrize("change", [new_labels_in_the_file, labels_changed_by_a_person])
def test_an_idle_agent_that_cannot_take_the_job_which_waits_is_replaced(change, minimum):
    day = a_day(min_agents=minimum)
    [build] = day.queue(1, change(day), seconds=60.0)
    day.minutes(20)
    assert build.ended is Ended.FINISHED
    assert {one.killed_by for one in day.jenkins.builds} == {""}
