"""Time-lines of keys that leave the fleet file while something of theirs is there: in each state of it nothing is left in the end.

Their rules run without the key, too. These tests are there so that it stays so.
"""

from dataclasses import replace

import pytest

from autoscaler.domain.facts.fleet import NO_CEILINGS, Share
from autoscaler.domain.facts.plan import Launch, Stop
from autoscaler.domain.facts.snapshot import RecordState
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from autoscaler_workbench.simulate.result import leaked_instances, leaked_nodes
from scenarios.test_hours_per_day import a_day as a_day_of_few_hours
from scenarios.test_hours_per_day import submitted_every
from scenarios.test_rotation import a_day as a_day_of_two_controllers
from scenarios.test_rotation import elsewhere
from scenarios.test_warm_pool import WARM, a_warm_pool
from support.file_changes import pool_is_now
from support.reserving import an_idle_day, connected, release, reserve
from support.timeline import Day
from support.warm import starts_proven
from support.worlds import in_memory

HOUR = 60
STEP_SECONDS = 10.0


def until(day, state, minutes=40):
    """Live in short steps until a record is in this state; each minute the functions run."""
    for _ in range(int(minutes * 60 / STEP_SECONDS)):
        if any(record.state is state for record in day.fleet.state.records.values()):
            return day
        day.world.move_to(day.world.timeline.now + STEP_SECONDS)
        if day.world.timeline.now % 60.0 < STEP_SECONDS:
            for function in (day.fleet.publish_metrics, day.fleet.scale_up, day.fleet.scale_down):
                function()
                if any(record.state is state for record in day.fleet.state.records.values()):
                    return day
    raise AssertionError(f"no record is {state}")


def nothing_is_left(day):
    alive = [instance.id for instance in day.world.alive()]
    open_records = [record for record in day.fleet.state.records.values() if record.state is not RecordState.GONE]
    left = alive, open_records, day.nodes(), leaked_instances(day.world), leaked_nodes(day.world)
    return not any(left), left


def no_warm_pool(day):
    pool_is_now(day, "cpu", warm_pool=None)
    return day


@pytest.mark.parametrize("state", [RecordState.STOPPING, RecordState.STOPPED, RecordState.STARTING])
def test_without_warm_pool_what_stops_is_stopped_or_starts_serves_or_goes(state):
    day = starts_proven(Day(in_memory(a_warm_pool(WARM)))).minutes(1)
    builds = day.queue(3, seconds=300.0)
    until(day, RecordState.STOPPING if state is RecordState.STOPPING else RecordState.STOPPED)
    if state is RecordState.STARTING:
        day.minutes(10)
        builds += day.queue(2, seconds=300.0)
        until(day, state)
    no_warm_pool(day).minutes(2 * HOUR)
    assert {build.ended for build in builds} == {Ended.FINISHED}
    assert nothing_is_left(day) == (True, ([], [], [], [], []))


@pytest.mark.parametrize("code", ["IncorrectInstanceState", "InternalError"])
def test_without_warm_pool_what_ec2_refuses_to_stop_goes(code):
    day = starts_proven(Day(in_memory(a_warm_pool(WARM)))).minutes(1)
    day.fleet.faults.plan(Fault("ec2 StopInstances", status=400, code=code, times=10**6))
    day.queue(2, seconds=300.0)
    until(day, RecordState.STOPPING)
    no_warm_pool(day).minutes(3 * HOUR)
    assert nothing_is_left(day) == (True, ([], [], [], [], []))


def test_without_warm_pool_what_a_person_started_or_stopped_goes():
    day = starts_proven(Day(in_memory(a_warm_pool(WARM)))).minutes(1)
    day.queue(2, seconds=300.0)
    until(day, RecordState.STOPPED)
    day.minutes(10)
    [first, _] = day.world.alive()
    day.world.ec2.start(first.id)
    no_warm_pool(day).minutes(3 * HOUR)
    assert nothing_is_left(day) == (True, ([], [], [], [], []))


def test_once_warm_pool_is_back_agents_are_stopped_again():
    day = starts_proven(Day(in_memory(a_warm_pool(WARM)))).minutes(1)
    day.queue(2, seconds=300.0)
    until(day, RecordState.STOPPED)
    no_warm_pool(day).minutes(HOUR)
    pool_is_now(day, "cpu", warm_pool=WARM)
    before = len(day.done(Stop))
    day.queue(2, seconds=300.0)
    day.minutes(HOUR)
    assert len(day.done(Stop)) - before == 2


@pytest.mark.parametrize("seconds", [20, 70, 90, 130, 200, 260, 600])
@pytest.mark.parametrize("share", [Share.NONE, Share.COOPERATIVE], ids=str)
def test_without_rotate_an_agent_on_its_way_arrives_or_goes_and_every_job_is_served(seconds, share):
    day = a_day_of_two_controllers(idle_seconds=1200.0, max_idle_seconds=1200.0, max_agents=2)
    build = elsewhere(day, seconds=600.0)
    _in_steps(day, seconds)
    pool_is_now(day, "gpu", share=share)
    [own] = day.queue(1, label="gpu", seconds=600.0)
    day.minutes(3 * HOUR)
    assert (build.ended, own.ended) == (Ended.FINISHED, Ended.FINISHED)
    nodes = [name for controller in day.world.controllers.values() for name in controller.nodes if "beacon" not in name]
    assert (day.world.alive(), nodes) == ([], [])


def _in_steps(day, seconds):
    for _ in range(seconds // 10):
        day.world.move_to(day.world.timeline.now + 10.0)
        if day.world.timeline.now % 60.0 < 10.0:
            for function in (day.fleet.publish_metrics, day.fleet.scale_up, day.fleet.scale_down):
                function()


def reservation(day):
    [node] = connected(day)
    reserve(day, target=node.name, hours=1.0)
    return node


@pytest.mark.parametrize("how", ["it ends", "it is released", "the machine ends", "the node is deleted", "the person brings it online"])
def test_nothing_of_a_reservation_that_has_ended_is_left(how):
    day = an_idle_day()
    node = reservation(day)
    day.minutes(10)
    if how == "it is released":
        release(day, node.name)
    elif how == "the machine ends":
        day.world.ec2.end(day.world.alive()[0])
    elif how == "the node is deleted":
        day.jenkins.delete_node(node.name)
    elif how == "the person brings it online":
        day.jenkins.toggle(node.name, "", "alice")
    day.minutes(4 * HOUR)
    assert nothing_is_left(day) == (True, ([], [], [], [], []))


@pytest.mark.parametrize("warm", [None, WARM], ids=["no warm pool", "warm pool"])
def test_a_reservation_that_ends_once_its_pool_has_other_keys_ends_all_the_same(warm):
    day = an_idle_day(warm_pool=WARM if warm is None else None)
    reservation(day)
    pool_is_now(day, "cpu", warm_pool=warm, labels=frozenset({"other"}), max_agents=1)
    day.minutes(4 * HOUR)
    assert nothing_is_left(day) == (True, ([], [], [], [], []))


@pytest.mark.parametrize("minutes", [30, 2 * HOUR + 5, 3 * HOUR], ids=["before it is reached", "builds run on", "all are gone"])
def test_without_max_hours_per_day_agents_come_back_to_work_at_once(minutes):
    day = a_day_of_few_hours(2.0)
    builds = submitted_every(day, minutes - minutes % 20, 20, seconds=1500.0)
    pool_is_now(day, "rare", ceilings=NO_CEILINGS)
    day.minutes(8 * HOUR)
    assert {build.ended for build in builds} == {Ended.FINISHED}
    assert nothing_is_left(day) == (True, ([], [], [], [], []))
    assert day.fleet.state.memory.fleet.day.hours == {}


def test_if_max_hours_per_day_comes_back_on_the_same_day_it_is_kept_to():
    day = a_day_of_few_hours(1.0)
    limited = day.fleet.fleet.pools["rare"].ceilings
    submitted_every(day, 2 * HOUR, 20, seconds=1500.0)
    pool_is_now(day, "rare", ceilings=NO_CEILINGS)
    day.minutes(HOUR)
    pool_is_now(day, "rare", ceilings=replace(limited, max_hours_per_day=1.0))
    submitted_every(day, 3 * HOUR, 20, seconds=600.0)
    before = len(day.done(Launch))
    submitted_every(day, 2 * HOUR, 20, seconds=600.0)
    assert len(day.done(Launch)) == before
