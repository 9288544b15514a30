"""Pools and controllers that leave the fleet file, in each state of an agent: nothing is left, or a person is told what they can end."""

import pytest

from autoscaler.domain.facts.orders import DrainNodes
from autoscaler.domain.facts.snapshot import RecordState
from autoscaler_workbench.fakes.world.faults import Fault
from scenarios.test_keys_leave_cleanly import until
from scenarios.test_warm_pool import WARM
from support.builders import a_pool, an_offering
from support.left_keys import deploy, without_controller, without_pools
from support.reserving import reserve
from support.timeline import Day
from support.worlds import in_memory

DISK = an_offering(usd_per_hour=3.0, volume_usd_per_hour=0.02)
FEW_LEAVE = 3  # agents of another pool: a pool with most of the fleet's agents would be kept for an hour


def a_day(**facts):
    """A pool on other, and agents of another one on main, so that the first has less than half of the fleet."""
    given = {"controllers": ("other",), "max_agents": 3, "idle_seconds": 300.0, "offerings": (DISK,), "boot_seconds": 60.0} | facts
    day = Day(in_memory(a_pool("cpu", max_agents=FEW_LEAVE, min_agents=FEW_LEAVE), a_pool("web", **given))).minutes(8)
    day.jenkins = day.world.controllers["other"]
    return day


def an_agent(seconds=60.0, minutes=5, **facts):
    """Such a day with an agent of the pool, which has had a build, or has one."""
    day = a_day(**({"idle_seconds": 2400.0} | facts))
    day.queue(1, "web", seconds)
    day.minutes(minutes)
    [_] = of_web(day)
    return day


def of_web(day):
    return [instance for instance in day.world.alive() if instance.tags["autoscaler:pool"] == "web"]


def node(day):
    [name] = [name for name in day.nodes() if name.startswith("web")]
    return name


def then(day, happen):
    happen(day)
    return day


def drained(day):
    order = DrainNodes(nodes=(node(day),), reason="new fans", request_id=None)
    day.order(order)


def to_start():
    day = then(a_day(warm_pool=WARM, boot_seconds=180.0), lambda day: day.queue(1, "web", 60.0))
    until(day, RecordState.STOPPED).minutes(10).queue(1, "web", 60.0)
    return until(day, RecordState.STARTING)


def unanswered():
    day = a_day()
    day.fleet.faults.plan(Fault("ec2 CreateFleet", after=True))
    day.queue(1, "web", 60.0)
    return day.minutes(1)


def interrupted(day):
    day.world.ec2.interrupt(of_web(day)[0])


STATES = {
    "its launch is not answered": unanswered,
    "it boots": lambda: then(a_day(), lambda day: day.queue(1, "web", 60.0)).minutes(1),
    "it builds": lambda: an_agent(seconds=3000.0),
    "it is idle": an_agent,
    "it is drained by a person": lambda: then(an_agent(), drained),
    "it is in quarantine": lambda: then(
        an_agent(), lambda day: day.jenkins.set_offline(node(day), "autoscaler:f:quarantine:p", "autoscaler")
    ),
    "a monitor marked it": lambda: then(an_agent(), lambda day: mark(day, "hudson.node_monitors.DiskSpaceMonitorDescriptor$DiskSpace")),
    "it has lost its connection": lambda: then(an_agent(), lambda day: day.jenkins.disconnect(node(day))),
    "EC2 takes it back": lambda: then(an_agent(), interrupted),
    "it stops": lambda: until(then(a_day(warm_pool=WARM), lambda day: day.queue(1, "web", 60.0)), RecordState.STOPPING),
    "it is stopped": lambda: until(then(a_day(warm_pool=WARM), lambda day: day.queue(1, "web", 60.0)), RecordState.STOPPED),
    "it starts": to_start,
    "it is given up": lambda: until(then(a_day(), lambda day: day.queue(1, "web", 60.0)), RecordState.CONDEMNED),
    "its node was deleted": lambda: then(an_agent(), lambda day: day.jenkins.delete_node(node(day))),
    "its record was lost": lambda: then(an_agent(), lambda day: [day.fleet.state.records.pop(one.id) for one in of_web(day)]),
    "a person has reserved it": lambda: then(an_agent(), lambda day: reserve(day, node(day), hours=1.0)),
}


def mark(day, cause):
    marked = day.jenkins.nodes[node(day)]
    marked.temporarily_offline, marked.cause, marked.reason = True, cause, "Disk space is too low"
    marked.cause_at = day.world.timeline.now


def records(day):
    return [(record.machine, str(record.state)) for record in day.fleet.state.records.values() if record.pool == "web"]


def nothing_is_left(day):
    intents = [intent.id for intent in day.fleet.state.intents.values() if intent.open]
    nodes = [name for name in day.nodes() if name.startswith("web")]
    return ([instance.id for instance in of_web(day)], records(day), nodes, intents) == ([], [], [], [])


def no_build_was_cut_short(day):
    return [build.job for build in day.jenkins.builds if build.killed_by and "interrupted" not in build.killed_by] == []


@pytest.mark.parametrize("state", STATES)
def test_of_a_pool_that_leaves_nothing_is_left_in_whatever_state_its_agent_is(state):
    day = STATES[state]()
    deploy(day.fleet, without_pools(day.fleet.fleet, "web"))
    day.hours(1.5)
    assert nothing_is_left(day), (records(day), day.nodes())
    assert no_build_was_cut_short(day)


@pytest.mark.parametrize("state", STATES)
def test_of_a_controller_that_leaves_what_is_left_is_named_and_goes_once_the_controller_is_back(state):
    day = STATES[state]()
    file = day.fleet.fleet
    deploy(day.fleet, without_controller(file, "other"))
    day.hours(0.5)
    told = day.status().left
    assert [one.id for one in of_web(day) if not any(one.id in line and "autoscaler end" in line for line in told)] == []
    assert [machine for machine, _ in records(day) if machine not in {one.id for one in of_web(day)}] == []
    deploy(day.fleet, file)
    day.hours(2)
    of_pool = [instance.id for instance in of_web(day) if instance.is_on()]
    assert (of_pool, no_build_was_cut_short(day)) == ([], True)
