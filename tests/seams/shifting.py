"""Stores numbers and times that cannot be, one at a time, and lives on, as a server of `support.forks`, for it forks.

A wrong clock, another version or a person may have stored anything. No function may crash or run for ever because of it.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from autoscaler.domain.facts.job_stats import JobRow, JobTracker
from autoscaler.domain.facts.started_builds import Rerun, RunOrder
from autoscaler.errors import AutoscalerError
from autoscaler.ports import StoredState
from autoscaler_workbench.simulate.drive import InMemory
from seams.altering import DAY, MINUTE, Alteration
from seams.facts import classes_in
from seams.moments import ASKED, DOORS, Moment, visit
from seams.scenes import scene_named
from support.sampling import some

_STORED = (StoredState, JobTracker, JobRow, RunOrder, Rerun)
_BEYOND = 1e15
_MOST_OF_MAKE_TEST = 20


@cache
def stored() -> frozenset[str]:
    """The classes of which state is made."""
    return frozenset(kind.__name__ for given in _STORED for kind in classes_in(given))


def shifted(value: Any) -> Iterator[Any]:
    """Move a number both ways, far and near; of what holds several each, or the first ones."""
    match value:
        case bool():
            return
        case float():
            yield from (value - 15 * MINUTE, value + 15 * MINUTE, value - 3 * DAY, value + 3 * DAY, 0.0, -500.0, _BEYOND)
        case int():
            yield from (-3, 0, 5000)
        case tuple() if value and isinstance(value[0], float):
            yield from (tuple(one + by for one in value) for by in (-15 * MINUTE, 15 * MINUTE, -30 * DAY, 30 * DAY))
            yield tuple(-abs(one) for one in value)
        case Mapping():
            yield from ({**value, key: other} for key in list(value)[:2] for other in shifted(value[key]))


def alterations(moment: Moment) -> dict[str, Alteration]:
    """Everything that can be moved at a moment, of each fact in two places at the most."""
    places = {fact: where[:2] for fact, where in moment.places.items() if fact.partition(".")[0] in stored()}
    found = [Alteration(place, other) for where in places.values() for place, value in where for other in shifted(value)]
    return {f"{number} {one.place.fact} {one.value!r}"[:120]: one for number, one in enumerate(found)}


def lead_to(scene: str, minute: int) -> tuple[int, dict[str, str]]:
    """Try some of them, or all; return how many, and what went wrong."""
    wrong: dict[str, str] = {}
    count = 0

    def at(fleet: InMemory, _: int) -> None:
        nonlocal count
        moment = Moment(fleet, (*DOORS, *ASKED))
        cases = alterations(moment)
        chosen = some([f"{scene} {name}" for name in cases], most=_MOST_OF_MAKE_TEST)
        for name in (one.removeprefix(f"{scene} ") for one in chosen):
            count += 1
            if problem := moment.problem_of(cases[name], AutoscalerError):
                wrong[name] = problem

    visit(scene_named(scene), [minute], at)
    return count, wrong


def answer(scene: str, minute: int) -> dict[str, Any]:
    """Stop a scene at a minute; return how many values were tried there, and what went wrong, by fact."""
    count, wrong = lead_to(scene, minute)
    return {"tried": count, "wrong": wrong}
