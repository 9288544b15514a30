"""Time-lines of builds on agents that take no more builds: no other agent is kept for them, and they return as what they were."""

import pytest

from autoscaler.domain.facts.orders import DrainNodes
from autoscaler.domain.facts.plan import Launch
from autoscaler_workbench.fakes.world.jenkins.builds import Ended, Kind
from autoscaler_workbench.fakes.world.jenkins.monitoring import DISK, NodeMonitor, watch
from support.builders import a_pool
from support.remembered import tables
from support.reserving import reserve
from support.timeline import Day
from support.worlds import in_memory

HOUR = 3600.0
LONG = 3


def a_day(**pool):
    """Three builds that run for ten hours."""
    facts = {"idle_seconds": 300.0, "max_agents": 20, "queue_maturity_seconds": 0.0, "boot_seconds": 60.0} | pool
    day = Day(in_memory(a_pool("cpu", **facts))).minutes(3)
    builds = day.queue(LONG, seconds=10 * HOUR, kind=Kind.PIPELINE)
    day.minutes(5)
    assert all(build.started_at is not None for build in builds)
    return day, builds


def drain(day, nodes):
    order = DrainNodes(nodes=tuple(nodes), reason="weird disk noise", request_id=None)
    day.order(order, by_a_person=True)


def set_aside(day, nodes):
    for node in nodes:
        day.jenkins.set_offline(node, "I look at it", "root")


def mark(day, nodes):
    """Of most agents it would be the controller's fault."""
    day.queue(4 * LONG, seconds=60.0)
    day.minutes(4)
    watch(day.jenkins, NodeMonitor(cause=DISK, words="Disk space is too low", minds=lambda node: node.name in nodes))


def hand_to_people(day, nodes):
    for number, node in enumerate(nodes):
        reserve(day, node, hours=12.0, request=f"r-{number}")


def machine(day, node):
    return next(instance for instance in day.world.alive() if instance.tags.get("autoscaler:node") == node)


def cut_off(day, nodes):
    """Their network is gone: Jenkins keeps a pipeline on the executor of a node that is not connected."""
    for node in nodes:
        day.jenkins.disconnect(node)


def end_untold(day, nodes):
    for node in nodes:
        instance = machine(day, node)
        day.world.ec2.announce = lambda _instance, _what: None
        day.world.ec2.end(instance)
        instance.visible_at = float("inf")


WAYS = [drain, set_aside, mark, hand_to_people, cut_off, end_untold]


def beside(day, nodes):
    """The agents that are paid beside these nodes."""
    return [instance for instance in day.world.alive() if instance.tags.get("autoscaler:node") not in nodes]


@pytest.mark.parametrize("way", WAYS)
def test_no_agent_is_kept_for_builds_on_agents_that_are_out_of_use(way):
    day, long = a_day()
    nodes = [build.node for build in long]
    way(day, nodes)
    short = day.queue(LONG, seconds=60.0)
    day.minutes(6)
    assert [build.ended for build in short] == [Ended.FINISHED] * LONG
    day.minutes(30)
    assert beside(day, nodes) == []


def test_nor_for_those_on_agents_that_have_had_all_the_builds_they_may_have():
    day, long = a_day(max_builds=1)
    late = day.queue(LONG, seconds=60.0)
    day.minutes(1)
    for build in late:
        day.jenkins.abort(build)  # somebody thinks better of it while their agents boot
    day.minutes(30)
    assert beside(day, [build.node for build in long]) == []


def test_a_machine_that_is_shutting_down_for_hours_keeps_no_other():
    day, long = a_day()
    nodes = [build.node for build in long]
    for node in nodes:
        instance = machine(day, node)
        instance.state, instance.ended_at = "shutting-down", day.world.timeline.now
    day.world.ec2.changes += 1
    day.queue(LONG, seconds=60.0)
    day.minutes(40)
    assert beside(day, nodes) == []


@pytest.mark.parametrize("fresh", [0, 1])
def test_builds_that_come_back_with_their_agents_are_no_burst(fresh):
    """Nothing is launched for those that would follow, and nobody learns that so many agents were missed."""
    day, long = a_day(idle_seconds=None)
    learned = tables(day.fleet.state.memory).idle_returns, tables(day.fleet.state.memory).growths
    nodes = [build.node for build in long]
    launched = len(day.done(Launch))
    for _ in range(10):
        cut_off(day, nodes)
        day.minutes(3)
        for node in nodes:
            day.jenkins.connect(node)
        day.queue(fresh, seconds=30.0)
        day.minutes(3)
    assert [build.ended for build in long] == [None] * LONG
    if not fresh:
        assert len(day.done(Launch)) == launched
        assert (tables(day.fleet.state.memory).idle_returns, tables(day.fleet.state.memory).growths) == learned
    growths = tables(day.fleet.state.memory).growths["main/cpu"][1:]
    assert all(step[1] <= fresh for growth in growths for step in growth.steps), growths


def test_work_on_agents_that_take_builds_keeps_them_as_before():
    day, long = a_day()
    day.minutes(60)
    assert day.agents() == LONG
    assert all(not day.jenkins.nodes[build.node].offline for build in long)
