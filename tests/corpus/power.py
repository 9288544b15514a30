"""``python -m corpus.power [WORD]``: plants known bugs of the decision, counts which are noticed.

The cases that enter the bug's lines are repeated until one differs. What became of each bug is
printed when it is known; the last lines name the bugs that none notices.
"""

import os
import sys
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from math import ceil
from multiprocessing import get_context
from resource import RLIM_INFINITY, RLIMIT_CPU, setrlimit
from signal import SIGXCPU
from time import perf_counter, process_time

from corpus.branches import lines_of_each
from corpus.candidates import FOLDER
from corpus.case import LAYER, archives, lines_of, read
from corpus.compare import is_decided_otherwise
from corpus.play import play
from planted.bug import Bug
from planted.test_planted import BUGS
from support.definitions import definition_of
from support.planting import plant

# Rooms of the domain that neither a decision nor a measurement enters.
_NOT_DECIDED = ("report", "run_orders")
# Functions of the other rooms that neither of them enters, and who does.
_ELSEWHERE = {
    **dict.fromkeys(("best_row", "left_of", "note_value", "_range_of"), "statistics of jobs"),
    **dict.fromkeys(("hold", "resume"), "who carries out what a person orders"),
    "unknown_orders": "the reader of stored data",
    "executors_at_first": "who describes a new node to its machine",
}
MISSED = FOLDER / "missed-bugs.txt"  # their names
_PARTS = 16
# A bug may make a pass go on for ever: the longest case takes less than a second.
_MOST_CPU_SECONDS = 20
_SAME, _OTHERWISE, _RAISES, _NOT_PLANTED = range(4)
_HOW = {_OTHERWISE: "decides otherwise", _RAISES: "raises", -SIGXCPU: "goes on for ever"}
_LINES: list[str] = []
_AT: dict[str, dict[int, list[int]]] = {}  # cases by file and line


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a planted bug. ``how``: "" if no case notices it; ``case``: the number of the
    one that does."""

    how: str = ""
    case: int | None = None


class NotPlayedError(Exception):
    """A child has ended in a way that says nothing about its bug."""


def bugs_of_the_decision(word: str) -> list[Bug]:
    rooms = {bug: definition_of(bug.function, bug.was).place.split("/") for bug in BUGS}
    return [
        bug
        for bug, place in rooms.items()
        if place[0] == "domain"
        and place[1] not in _NOT_DECIDED
        and word in bug.name
        and bug.function not in _ELSEWHERE
    ]


def _entered(part: int) -> list[tuple[str, int, str]]:
    cases = {str(number): _player(number) for number in range(part, len(_LINES), _PARTS)}
    return list(lines_of_each(cases))


def _player(number: int) -> Callable[[], object]:
    return lambda: list(play(read(_LINES[number]).case))


def index(lines: Iterable[str]) -> dict[str, dict[int, list[int]]]:
    """Which cases enter which line. ``lines``: as they stand in an archive."""
    _LINES[:] = lines
    at: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    with ProcessPoolExecutor(mp_context=get_context("fork")) as processes:
        for part in processes.map(_entered, range(min(_PARTS, len(_LINES)))):
            for file, line, number in part:
                at[file][line].append(int(number))
    return at


def take(lines: Iterable[str]) -> None:
    """Try bugs on these cases from now on."""
    _AT.clear()
    _AT.update(index(lines))


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


def verdict_on(bug: Bug) -> Verdict:
    """Try a bug on the cases that enter its lines."""
    return _verdict(bug, cases_for(bug))


def verdict_among(bug: Bug, lines: Iterable[str]) -> Verdict:
    """Try a bug on each of these cases alone."""
    _LINES[:] = lines
    return _verdict(bug, range(len(_LINES)))


def _verdict(bug: Bug, cases: Iterable[int]) -> Verdict:
    """Plant a bug in a process of its own, and repeat cases until one differs. What raises, or goes
    on for ever, differs."""
    _warm()
    begun, begins = os.pipe()  # the child says which case it begins
    if (child := os.fork()) == 0:
        _plant(bug)
        code = _RAISES
        try:
            _begin_anew()
            code = _OTHERWISE if any(_differs(number, begins) for number in cases) else _SAME
        finally:
            os._exit(code)
    os.close(begins)
    with os.fdopen(begun) as numbers:
        last = numbers.read().split()[-1:]
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == _SAME:
        return Verdict()
    if code not in _HOW:
        raise NotPlayedError(f"{bug.name}: its process ended with {code}")
    return Verdict(_HOW[code], int(last[0]) if last else None)


@cache
def _warm() -> None:
    """Prepare what all children of a process need."""
    for line in _LINES[:3]:
        is_decided_otherwise(read(line))


def _plant(bug: Bug) -> None:
    try:
        plant(definition_of(bug.function, bug.was), bug.was, bug.becomes)
    except BaseException:  # noqa: BLE001 - the child's boundary: the parent sees its code
        traceback.print_exc()
        os._exit(_NOT_PLANTED)


def _begin_anew() -> None:
    """Import our own modules anew if planting did so with those of the layer."""
    if "autoscaler.domain.decide" not in sys.modules:
        for name in [name for name in sys.modules if name.startswith("corpus.")]:
            del sys.modules[name]


def _differs(number: int, begins: int) -> bool:
    from corpus.case import read  # noqa: PLC0415 - anew, if the layer is
    from corpus.compare import is_decided_otherwise  # noqa: PLC0415

    os.write(begins, f"{number}\n".encode())
    setrlimit(RLIMIT_CPU, (ceil(process_time()) + _MOST_CPU_SECONDS, RLIM_INFINITY))
    return is_decided_otherwise(read(_LINES[number]))


def verdicts(lines: Iterable[str], bugs: Iterable[Bug]) -> Iterator[tuple[Bug, Verdict]]:
    """Try each bug on these cases, and yield it when its verdict is known. ``lines``: as they stand
    in an archive."""
    take(lines)
    with ProcessPoolExecutor(mp_context=get_context("fork")) as processes:
        trials = {processes.submit(verdict_on, bug): bug for bug in bugs}
        try:
            for trial in as_completed(trials):
                yield trials[trial], trial.result()
        finally:
            processes.shutdown(cancel_futures=True)


def main(word: str = "") -> int:
    bugs, missed, began = bugs_of_the_decision(word), list[Bug](), perf_counter()
    lines = [line for archive in archives() for line in lines_of(archive)]
    for number, (bug, verdict) in enumerate(verdicts(lines, bugs), start=1):
        _say(f"{number:>4} {perf_counter() - began:>5.0f} s  {_told(bug, verdict)}")
        if not verdict.how:
            missed.append(bug)
    _say(f"{len(bugs) - len(missed)} of {len(bugs)} planted bugs are noticed; missed:")
    for bug in missed:
        _say(f"  {bug.name} ({bug.function})")
    FOLDER.mkdir(parents=True, exist_ok=True)
    MISSED.write_text("".join(f"{bug.name}\n" for bug in missed), encoding="utf-8")
    return 0


def _told(bug: Bug, verdict: Verdict) -> str:
    if not verdict.how:
        return f"missed: {bug.name} ({bug.function})"
    case = "" if verdict.case is None else f" in {read(_LINES[verdict.case]).case.name}"
    return f"noticed: {bug.name} {verdict.how}{case}"


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
