"""The pass that answers for a lost build, cut off at each of its calls in every way: the build is run again, and never twice."""

from contextlib import suppress

import pytest

from autoscaler.errors import AutoscalerError
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from support.cut import Cut, cuts
from support.cutoffs import Died
from support.lost import RUN_ID, a_day, answers, define, running

DECLARES = pytest.mark.parametrize("declares", [(), (RUN_ID,), ("REF",)], ids=["no parameters", "with the id", "another parameter"])


def lived(declares, at=-1, way=""):
    """A build is lost, and the pass that answers for it is cut off; then an hour goes by. Returns the day and the number of its calls."""
    faults = Cut(at=at, way=way)
    day = a_day(faults=faults)
    _, instance = running(day, define(day, "job", *declares, seconds=600.0), given=dict.fromkeys(declares, "x") if declares else None)
    day.world.ec2.end(instance)
    day.world.move_to(day.world.timeline.now + 60.0)
    assert day.fleet.state.memory.lost, "what EC2 announced is noted"
    faults.armed = True
    with suppress(Died, AutoscalerError):
        day.fleet.scale_down()
    faults.armed = faults.dead = False
    calls = faults.made
    day.world.move_to(day.world.timeline.now + 120.0)  # a lease that nobody released has expired
    day.minutes(22)
    return day, calls


@DECLARES
def test_wherever_it_is_cut_off_the_build_is_run_again_once(declares, record_property):
    _, calls = lived(declares)
    assert calls > 10
    record_property("counted", ("cut-offs of a pass that runs a build again", len(cuts(calls))))
    broken = []
    for at, way in cuts(calls):
        day, _ = lived(declares, at, way)
        ended = [build.ended for build in day.jenkins.builds_of["job"]]
        if ended != [Ended.KILLED, Ended.FINISHED] or answers(day) != [("job/job/1", "started", 1)]:
            broken.append((at, way, ended, answers(day)))
    assert broken == []
