"""Time-lines of agents that come and go: each of the hour's launches counts, wherever a pass is cut off."""

import pytest

from autoscaler.control import passes
from autoscaler_workbench.fakes.world.faults import Fault
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory

LIMIT = 5


class CutOffError(BaseException):
    """Lambda ends the function here."""


@pytest.fixture
def day():
    return Day(in_memory(a_pool("cpu", idle_seconds=600.0), max_launches_per_hour=LIMIT)).minutes(3)


def take_all_away(day):
    for instance in day.world.alive():
        instance.interrupted = True
        day.world.ec2.end(instance)


def test_launches_count_though_the_memory_cannot_be_saved(day):
    day.fleet.faults.plan(Fault("state save_memory", times=1000))
    day.queue(1)
    for _ in range(40):
        day.minutes(1)
        take_all_away(day)
    assert len(day.world.ec2.instances) == LIMIT


def test_a_record_stays_until_its_launch_is_noted(day):
    day.queue(1)
    day.minutes(8)
    take_all_away(day)
    day.fleet.faults.dice = lambda call: Fault(call) if call == "state save_memory" else None
    day.minutes(30)
    assert day.fleet.state.records
    day.fleet.faults.dice = None
    day.jenkins.queue.clear()
    day.minutes(20)
    assert not day.fleet.state.records


def test_launches_count_though_each_pass_is_cut_off_before_it_saves(day):
    day.queue(1)
    for _ in range(40):
        day.world.move_to(day.world.timeline.now + 60)
        day.fleet.scale_up()
        take_all_away(day)
        day.fleet.faults.meanwhile = cut_off
        with pytest.raises(CutOffError):
            passes.scale_down(day.fleet.ports, day.fleet.fleet, day.fleet.invocation())
        day.fleet.faults.meanwhile = lambda _call: None
        day.fleet.state.holder = None
    assert len(day.world.ec2.instances) == LIMIT


def cut_off(call):
    if call == "state save_memory":
        raise CutOffError


def test_a_launch_whose_agent_is_forgotten_later_than_noted_counts_once(day):
    """Cut off between the two, its record is still there and its launch is noted already."""
    day.queue(1)
    day.minutes(1)
    day.fleet.faults.plan(Fault("state change_record", times=1))
    take_all_away(day)
    day.minutes(1)
    [instance] = [i for i in day.world.ec2.instances.values() if not i.alive()]
    assert day.fleet.state.memory.gone[instance.id] == pytest.approx(instance.launched_at, abs=60.0)
    for _ in range(40):
        day.minutes(1)
        take_all_away(day)
    assert len(day.world.ec2.instances) == LIMIT


@pytest.mark.parametrize("looks", [0, 30])
@pytest.mark.parametrize("seconds", [30.0, 1800.0])
def test_launches_count_though_the_state_was_restored_as_it_was_before_them(day, seconds, looks):
    """Whether their agents are there still, or have ended meanwhile."""
    state = day.fleet.state
    kept = {"records": dict(state.records), "intents": dict(state.intents), "memory": state.memory}
    day.minutes(looks)
    day.queue(9, seconds=seconds)
    day.minutes(3)
    assert len(day.world.ec2.instances) == LIMIT
    if seconds == 30.0:
        day.minutes(20)
        assert day.agents() == 0
    for name, value in kept.items():
        setattr(state, name, value)
    day.queue(9, seconds=seconds)
    day.minutes(10)
    assert len(day.world.ec2.instances) == LIMIT


def test_launches_count_though_the_state_was_lost(day):
    day.queue(9, seconds=30.0)
    day.minutes(20)
    assert (len(day.world.ec2.instances), day.agents()) == (LIMIT, 0)
    day.fleet.state.records.clear()
    day.fleet.state.memory = type(day.fleet.state.memory)(version=day.fleet.state.memory.version)
    day.queue(9, seconds=30.0)
    day.minutes(10)
    assert len(day.world.ec2.instances) == LIMIT
    day.minutes(60)
    assert len(day.world.ec2.instances) > LIMIT
