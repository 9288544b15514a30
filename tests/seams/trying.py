"""Tries facts at the moments that were found for them, as a server of `support.forks`, for it forks."""

from collections import defaultdict
from itertools import islice

from autoscaler_workbench.simulate.drive import InMemory
from seams.moments import ASKED, DECIDING, DOORS, ORDERED, TELLING, WINDOW_MINUTES, Moment, visit
from seams.scenes import scene_named

_MOST_TRIES = 200


def makes_a_difference(moment: Moment, fact: str, door: str) -> bool:
    """Tell whether any alteration of a fact is seen where it was found: where it decides, is told, or is answered."""
    doors = next(group for group in (DECIDING, TELLING, ASKED, ORDERED) if door in group)
    return any(moment.differs(alteration, doors) for alteration in islice(moment.tries(fact), _MOST_TRIES))


def silent(scene: str, wanted: dict[str, dict]) -> list[str]:
    """Name the facts that make no difference in a scene."""
    by_minute: dict[int, dict[tuple[int, tuple[str, ...]], list[str]]] = defaultdict(lambda: defaultdict(list))
    for fact, found in wanted.items():
        more = (found["door"],) if found["door"] in {*ASKED, *ORDERED} else ()
        by_minute[found["minute"]][found.get("window", WINDOW_MINUTES), more].append(fact)
    without_effect: list[str] = []

    def at(fleet: InMemory, minute: int) -> None:
        for (window, more), facts in by_minute[minute].items():
            moment = Moment(fleet, (*DOORS, *more), window)
            without_effect.extend(fact for fact in facts if not makes_a_difference(moment, fact, wanted[fact]["door"]))

    visit(scene_named(scene), by_minute.keys(), at)
    return without_effect


def answer(scenes: dict[str, dict[str, dict]]) -> list[str]:
    """Name the facts that make no difference. ``scenes``: by scene the moments of facts as `found.json` has them."""
    return [fact for scene, wanted in scenes.items() for fact in silent(scene, wanted)]
