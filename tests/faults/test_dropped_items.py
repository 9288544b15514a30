"""The looks that find that Jenkins dropped an item, each cut off at each of its calls in every way: its build is started, and once."""

from contextlib import suppress

import pytest

from autoscaler.errors import AutoscalerError
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from autoscaler_workbench.fakes.world.jenkins.handing import DROPS_BUILDS
from support.cut import Cut, cuts
from support.cutoffs import Died
from support.lost import RUN_ID, a_day, answers, define, dropped

SEEN, MISSED, ANSWERED = "an item is seen", "it is missed", "it is answered for"


def lived(cut_off, declares, at=-1, way=""):
    """An item is seen in two looks, dropped, missed and answered for; one of the looks is cut off. Returns the day and its calls."""
    faults = Cut(at=at, way=way)
    day = a_day(faults=faults, min_agents=1).minutes(6)
    day.jenkins.version, day.jenkins.handing_seconds = DROPS_BUILDS, 150.0
    item = define(day, "job", *declares, seconds=60.0).build("job", dict.fromkeys(declares, "x") or None, "somebody")
    look(day, armed=cut_off == SEEN)
    look(day)
    dropped(day, item)
    for name in (MISSED, ANSWERED):
        look(day, armed=cut_off == name)
    day.minutes(10)
    return day, faults.made


def look(day, *, armed=False):
    faults = day.fleet.faults
    day.world.move_to(day.world.timeline.now + 60.0)
    faults.armed = armed
    with suppress(Died, AutoscalerError):
        day.fleet.scale_down()
    faults.armed = faults.dead = False
    day.world.move_to(day.world.timeline.now + (15.0 if armed else 0.0))  # a lease that nobody released has expired with the next look


@pytest.mark.parametrize(
    ("cut_off", "declares"),
    [(SEEN, ()), (MISSED, ()), (ANSWERED, ()), (ANSWERED, (RUN_ID,))],
    ids=["seen", "missed", "answered", "with id"],
)
def test_wherever_a_look_is_cut_off_what_jenkins_dropped_is_started_once(cut_off, declares, record_property):
    _, calls = lived(cut_off, declares)
    assert calls >= 10
    record_property("counted", ("cut-offs of looks at what Jenkins dropped", len(cuts(calls))))
    broken = []
    for at, way in cuts(calls):
        day, _ = lived(cut_off, declares, at, way)
        ended = [build.ended for build in day.jenkins.builds_of["job"]]
        if ended != [Ended.KILLED, Ended.FINISHED] or [state for _, state, _ in answers(day)] != ["started"]:
            broken.append((at, way, ended, answers(day)))
    assert broken == []
