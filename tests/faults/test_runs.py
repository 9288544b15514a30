"""Runs that are ordered, carried on and ended, cut off at each call in every way: each is started once, and all are ended."""

from contextlib import suppress

import pytest

from autoscaler.domain.facts.run_orders import Until
from autoscaler.domain.report.run_orders import Outcome
from autoscaler.errors import AutoscalerError
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from support.builders import a_pool
from support.cut import Cut, cuts
from support.cutoffs import Died
from support.ordering import a_day, asked, builds, define, instance_of, order, told


def cut_off(day, faults, act):
    """Act, cut off where it is planned; return how many calls it made."""
    faults.armed, faults.made = True, 0
    with suppress(Died, AutoscalerError):
        act()
    faults.armed = faults.dead = False
    day.world.move_to(day.world.timeline.now + 120.0)  # a lease that nobody released has expired
    return faults.made


def begun(at, way):
    """Two runs are ordered, and the function is cut off; the person asks again with the same request."""
    faults = Cut(at=at, way=way)
    day = a_day(faults=faults)
    define(day, seconds=300.0)
    calls = cut_off(day, faults, lambda: order(day, asked(2, vary="pool")))
    order(day, asked(2, vary="pool"))
    return day.minutes(25), calls


def lost(at, way):
    """A run is lost with its machine, and the pass that is to start it again is cut off."""
    faults = Cut(at=at, way=way)
    day = a_day(a_pool("cpu"), faults=faults)
    define(day, seconds=900.0)
    order(day, asked())
    day.minutes(8)
    day.world.ec2.end(instance_of(day, builds(day)[0]))
    day.minutes(1)
    calls = cut_off(day, faults, day.fleet.scale_down)
    return day.minutes(45), calls


def delivered(at, way):
    """One of three has passed, and the pass that ends the others is cut off; one of them waits."""
    faults = Cut(at=at, way=way)
    day = a_day(a_pool("cpu", max_agents=2), faults=faults)
    define(day, seconds=36_000.0)
    order(day, asked(3), until=Until.FIRST_SUCCESS)
    day.minutes(8)
    day.jenkins.end(builds(day)[0], succeeded=True)
    calls = cut_off(day, faults, day.fleet.scale_down)
    return day.minutes(8), calls


SCENES = [
    (begun, [Ended.FINISHED] * 2),
    (lost, [Ended.KILLED, Ended.FINISHED]),
    (delivered, [Ended.FINISHED, Ended.ABORTED, Ended.ABORTED]),
]


@pytest.mark.parametrize(("scene", "ends"), SCENES, ids=lambda scene: getattr(scene, "__name__", ""))
def test_wherever_it_is_cut_off_each_run_is_started_once_and_ended(scene, ends, record_property):
    _, calls = scene(-1, "")
    assert calls > 8
    record_property("counted", ("cut-offs of runs that are ordered", len(cuts(calls))))
    broken = []
    for at, way in cuts(calls):
        day, _ = scene(at, way)
        [kept] = day.fleet.run_orders.orders.values()
        found = [build.ended for build in builds(day)]
        if found != ends or told(day, kept.id).outcome is not Outcome.PASSED or day.jenkins.queue:
            broken.append((at, way, found, told(day, kept.id).summary))
    assert broken == []
