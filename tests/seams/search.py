"""Looks for a moment at which a fact matters: ``python -m seams.search [FACT...]``, such as `Node.*`.

Only facts without a moment are tried.

What is found is written to ``found.json``: by fact, the scene, its minute, and the door at which the difference is seen.
"""

import argparse
import json
import sys
from fcntl import LOCK_EX, flock
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path

from autoscaler_workbench.simulate.drive import InMemory
from seams.altering import is_empty, places
from seams.facts import facts
from seams.moments import ASKED, DECIDING, DOORS, ORDERED, TELLING, WINDOW_MINUTES, Moment, visit
from seams.reasons import REASONS
from seams.scenes import SCENES, scene_named

_DOORS = {"deciding": DECIDING, "telling": TELLING, "asked": ASKED, "ordered": ORDERED}
FOUND = Path(__file__).with_name("found.json")


def found() -> dict[str, dict]:
    return json.loads(FOUND.read_text(encoding="utf-8") or "{}") if FOUND.exists() else {}


def keep(new: dict[str, dict]) -> dict[str, dict]:
    """Write down what is new; another search may write, too."""
    with FOUND.open("a+", encoding="utf-8") as file:
        flock(file, LOCK_EX)
        known = found() | new
        FOUND.write_text(
            "{\n" + ",\n".join(f"{json.dumps(fact)}: {json.dumps(known[fact])}" for fact in sorted(known)) + "\n}\n", encoding="utf-8"
        )
    return known


def best_minutes(scene: str, wanted: set[str], most: int) -> list[int]:
    """The minutes of a scene at which most of the wanted facts are stored or set, each minute for facts that no other one has."""
    there: dict[int, set[str]] = {}

    def at(fleet: InMemory, minute: int) -> None:
        inputs = {"fleet": fleet.fleet, "stored": fleet.state.read(), "run_orders": tuple(fleet.run_orders.orders.values())}
        inputs |= {"rows": tuple(fleet.jobs.kept.values()), "trackers": fleet.jobs.trackers, "reports": fleet.state.reports}
        inputs |= {"reruns": tuple(fleet.state.reruns.values()), "looks": [controller.look() for controller in fleet.ports.controllers]}
        there[minute] = {place.fact for source, value in inputs.items() for place, held in places(value, source) if not is_empty(held)}

    visit(scene_named(scene), None, at)
    chosen: list[int] = []
    left = {*wanted}
    while there and len(chosen) < most:
        minute = max(there, key=lambda one: len(there[one] & left))
        if not there[minute] & left:
            break
        chosen.append(minute)
        left -= there[minute]
    # What is nowhere stored may be answered: at some minute in the middle.
    return chosen or ([sorted(there)[len(there) // 2]] if there else [])


def look(scene: str, wanted: set[str], given: argparse.Namespace) -> dict[str, dict]:
    """Live one scene, and at its best minutes try each wanted fact that has no moment yet: is it seen at one of these doors?"""
    new: dict[str, dict] = {}
    doors, window = _DOORS[given.doors], given.window

    def at(fleet: InMemory, minute: int) -> None:
        moment = Moment(fleet, (*DOORS, *(() if doors in {DECIDING, TELLING} else doors)), window)
        read = set().union(*moment.read.values())
        print(f"{scene}, minute {minute}: {len(read & (wanted - new.keys()))} facts to try", flush=True)  # noqa: T201
        for fact in sorted(read & (wanted - new.keys())):
            for alteration in islice(moment.tries(fact), given.tries):
                if door := moment.differs(alteration, doors):
                    new[fact] = {"scene": scene, "minute": minute, "door": door} | ({"window": window} if window != WINDOW_MINUTES else {})
                    keep({fact: new[fact]})
                    print(fact, scene, minute, door, repr(alteration.value)[:80], flush=True)  # noqa: T201
                    break

    if minutes := given.at or best_minutes(scene, wanted, given.minutes):
        visit(scene_named(scene), minutes, at)
    return new


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--scenes", default="*")
    parser.add_argument("--minutes", type=int, default=3, help="how many are tried, of a scene")
    parser.add_argument("--at", type=int, nargs="*", help="these minutes")
    parser.add_argument("--tries", type=int, default=12)
    parser.add_argument("--doors", choices=[*_DOORS], default="deciding")
    parser.add_argument("--window", type=int, default=WINDOW_MINUTES, help="minutes that a difference may take")
    parser.add_argument("facts", nargs="*")
    given = parser.parse_args()
    known = found()
    for scene in [name for name in SCENES if fnmatch(name, given.scenes)] or [given.scenes]:
        without = [fact for fact in facts() if fact not in found() and fact not in REASONS]
        wanted = {fact for fact in without if any(fnmatch(fact, pattern) for pattern in given.facts or ("*",))}
        try:
            new = look(scene, wanted, given)
        except AssertionError as error:
            print(f"{scene}: {error}", file=sys.stderr)  # noqa: T201
            continue
        known = keep(new)
    print(f"{len(known)} of {len(facts())} facts have a moment")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
