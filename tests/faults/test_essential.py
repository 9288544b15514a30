"""A minute at `MetricsLevel: essential` with looks in between, cut off at each call in every way: what is wrong is still told, and soon."""

from contextlib import suppress
from random import Random

import pytest

from autoscaler.config.thresholds import read_thresholds
from autoscaler.errors import AutoscalerError
from autoscaler_workbench.fakes.slots import InMemorySlots
from autoscaler_workbench.simulate.drive import InMemory
from support.builders import a_fleet, a_pool
from support.cut import Cut, cuts
from support.cutoffs import Died
from support.deployed import essential_environment
from support.worlds import a_world

AT = read_thresholds(essential_environment())
DISK, DOWN = "controller disk low: controller main", "autoscaler down"


def lived(cut_off, at=-1, way=""):
    """A controller runs full and a job waits; one function of a minute is cut off. Returns the fleet, its pool's agents and the calls."""
    faults = Cut(at=at, way=way)
    fleet = a_fleet(a_pool("cpu", executors=1, max_agents=5, queue_maturity_seconds=0.0))
    world = a_world(fleet)
    slots = InMemorySlots(after=world.timeline.after, chance=Random(3), faults=faults)
    functions = InMemory(world, fleet, faults, look_every_seconds=20.0, slots=slots, thresholds=AT)
    slots.wake = functions.wake_scale_up
    world.controllers["main"].monitors.disk_bytes = 2**30
    for minute in range(9):
        world.move_to(world.timeline.now + 60.0)
        if minute == 2:
            world.controllers["main"].submit("job", "cpu", 36_000.0)
        for name in ("publish_metrics", "scale_up", "scale_down"):
            run(functions, faults, name, armed=minute == 3 and name == cut_off)
    return functions, faults.made


def run(functions, faults, name, *, armed):
    faults.armed = armed
    with suppress(Died, AutoscalerError):
        getattr(functions, name)()
    faults.armed = faults.dead = False


@pytest.mark.parametrize("cut_off", ["publish_metrics", "scale_up", "scale_down"])
def test_wherever_a_minute_is_cut_off_what_is_wrong_is_told_once_and_nothing_is_launched_twice(cut_off, record_property):
    _, calls = lived(cut_off)
    record_property("counted", ("cut-offs at the essential level", len(cuts(calls))))
    broken = []
    for at, way in cuts(calls):
        functions, _ = lived(cut_off, at, way)
        subjects = [message.subject.removeprefix("[f] ") for message in functions.notifier.sent]
        agents = len(functions.world.alive())
        # A message whose answer was lost is sent again.
        if not 1 <= subjects.count(DISK) <= 2 or agents != 1 or any(subject.startswith(DOWN) for subject in subjects):
            broken.append((at, way, subjects, agents))
    assert broken == []
    assert calls >= 8
