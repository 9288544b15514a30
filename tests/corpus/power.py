"""``python -m corpus.power [WORD]``: plants known bugs of the decision, counts which are noticed.

The cases that enter the bug's lines are repeated until one differs. The last lines name the bugs
that none notices.
"""

import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context

from corpus.branches import arcs_of
from corpus.case import LAYER, archives, lines_of, read
from corpus.compare import differences
from corpus.play import play
from planted.bug import Bug
from planted.test_planted import BUGS
from support.definitions import definition_of
from support.planting import plant

# Rooms of the domain that `decide` does not enter.
_NOT_DECIDED = ("report", "run_orders", "lessons.py")
_PARTS = 16
_NOTICED, _MISSED = 0, 1
_LINES: list[str] = []
_AT: dict[str, dict[int, list[int]]] = {}  # cases by file and line


def bugs_of_the_decision(word: str) -> list[Bug]:
    rooms = {bug: definition_of(bug.function, bug.was).place.split("/") for bug in BUGS}
    return [
        bug
        for bug, place in rooms.items()
        if place[0] == "domain" and place[1] not in _NOT_DECIDED and word in bug.name
    ]


def _entered(part: int) -> list[tuple[int, frozenset[tuple[str, int]]]]:
    entered = []
    for number in range(part, len(_LINES), _PARTS):
        case = read(_LINES[number]).case
        arcs = arcs_of(lambda: list(play(case)))  # noqa: B023 - called at once
        entered.append(
            (number, frozenset((file, abs(line)) for file, *lines in arcs for line in lines))
        )
    return entered


def index(lines: Iterable[str]) -> dict[str, dict[int, list[int]]]:
    """Which cases enter which line. ``lines``: as they stand in an archive."""
    _LINES[:] = lines
    at: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    with ProcessPoolExecutor(mp_context=get_context("fork")) as processes:
        for part in processes.map(_entered, range(_PARTS)):
            for number, places in part:
                for file, line in places:
                    at[file][line].append(number)
    return at


def cases_for(bug: Bug) -> list[int]:
    """The cases that enter the lines of a bug, the shortest first; all where none does, since a
    constant is read elsewhere."""
    definition = definition_of(bug.function, bug.was)
    before = definition.file.read_text(encoding="utf-8")[
        : definition.begins + definition.text.index(bug.was)
    ]
    first = before.count("\n") + 1
    lines = range(first, first + bug.was.count("\n") + 1)
    at = _AT.get(str(definition.file.relative_to(LAYER)), {})  # none: a file of constants
    entered = {number for line in lines for number in at.get(line, ())} or set(range(len(_LINES)))
    return sorted(entered, key=lambda number: len(_LINES[number]))


def notices(bug: Bug, cases: Sequence[int] | None = None) -> bool:
    """Plant a bug in a process of its own, and repeat cases, of all its own, until one differs.
    What raises differs."""
    _warm()
    cases = cases_for(bug) if cases is None else cases
    if (child := os.fork()) == 0:
        code = _NOTICED
        try:
            plant(definition_of(bug.function, bug.was), bug.was, bug.becomes)
            _begin_anew()
            code = _MISSED if all(map(_is_same, cases)) else _NOTICED
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != _MISSED


@cache
def _warm() -> None:
    """Prepare what all children of a process need."""
    for line in _LINES[:3]:
        next(differences(read(line)), None)


def _begin_anew() -> None:
    """Import our own modules anew if planting did so with those of the layer."""
    if "autoscaler.domain.decide" not in sys.modules:
        for name in [name for name in sys.modules if name.startswith("corpus.")]:
            del sys.modules[name]


def _is_same(number: int) -> bool:
    from corpus.case import read  # noqa: PLC0415 - anew, if the layer is
    from corpus.compare import WORDS, differences  # noqa: PLC0415

    return all(difference.kind == WORDS for difference in differences(read(_LINES[number])))


def missed_by(lines: Iterable[str], bugs: list[Bug]) -> list[Bug]:
    """Return the bugs that none of these cases notices. ``lines``: as they stand in an archive."""
    _AT.clear()
    _AT.update(index(lines))
    with ProcessPoolExecutor(mp_context=get_context("fork")) as processes:
        noticed = dict(zip(bugs, processes.map(notices, bugs), strict=True))
    return [bug for bug, is_noticed in noticed.items() if not is_noticed]


def main(word: str = "") -> int:
    bugs = bugs_of_the_decision(word)
    missed = missed_by((line for archive in archives() for line in lines_of(archive)), bugs)
    for line in _lines(bugs, missed):
        print(line)  # noqa: T201
    return 0


def _lines(bugs: list[Bug], missed: list[Bug]) -> Iterator[str]:
    yield f"{len(bugs) - len(missed)} of {len(bugs)} planted bugs are noticed; missed:"
    yield from (f"  {bug.name} ({bug.function})" for bug in missed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
