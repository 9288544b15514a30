"""Scenes in which facts are altered: a fleet in memory that lives; each of its minutes is a moment.

A scene brings many facts together, so that facts which the same doors read share one world. A time-line that is a test of its own is a
scene, too.
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module

from seams.scenes_of_builds import (
    a_pipeline_that_goes_on_elsewhere,
    a_pipeline_that_loses_one_of_its_branches,
    a_restart,
    lost_builds,
    ordered_runs,
)
from seams.scenes_of_limits import limits_on_every_level, orders_of_people
from seams.scenes_of_machines import cards, trouble_at_the_essential_level, what_agents_report, what_lasts_at_the_essential_level
from seams.scenes_of_memory import an_hourly_job, unsettled_launches, what_is_foreseen, what_is_remembered, what_was_learned
from support.busy import Hour, a_fleet_in_memory
from support.busy_shared import SharedHour, a_shared_fleet


def a_busy_hour() -> None:
    Hour(a_fleet_in_memory()).run(75)


def a_shared_hour() -> None:
    SharedHour(a_shared_fleet()).run(40)


SCENES: dict[str, Callable[[], object]] = {
    function.__name__.replace("_", " "): function
    for function in (
        a_busy_hour,
        a_shared_hour,
        lost_builds,
        a_pipeline_that_goes_on_elsewhere,
        a_pipeline_that_loses_one_of_its_branches,
        a_restart,
        ordered_runs,
        what_agents_report,
        trouble_at_the_essential_level,
        what_lasts_at_the_essential_level,
        cards,
        limits_on_every_level,
        orders_of_people,
        what_was_learned,
        what_is_foreseen,
        an_hourly_job,
        unsettled_launches,
        what_is_remembered,
    )
}


def scene_file(name: str) -> str:
    """The file that has a scene, from the project's root."""
    module = SCENES[name].__module__ if name in SCENES else name.partition("::")[0]
    return f"tests/{module.replace('.', '/')}.py"


def scene_named(name: str) -> Callable[[], object]:
    """Find a scene, or a time-line that is a test of its own: ``scenarios.test_drain::test_a_node_is_drained``."""
    if name in SCENES:
        return SCENES[name]
    module, _, test = name.partition("::")
    function = getattr(import_module(module), test)
    cases = {}
    for mark in getattr(function, "pytestmark", []):
        if mark.name == "parametrize":  # the first of its cases
            names, (first, *_) = mark.args[0], mark.args[1]
            names = [one.strip() for one in names.split(",")] if isinstance(names, str) else list(names)
            cases |= dict(zip(names, (first,) if len(names) == 1 else first, strict=True))
    return partial(function, **cases)
