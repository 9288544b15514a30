"""Repeats recorded cases, and says which are decided otherwise now, and how."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from difflib import unified_diff
from functools import cache
from os import cpu_count
from pathlib import Path

from corpus.case import Recorded, case_forms, lines_of, read
from corpus.forms import Forms
from corpus.neutral import without_detail
from corpus.play import begin, play
from corpus.words import words_of

PLAN, DETAILS, WORDS = "plan", "details", "words"
_SHOWN = 12  # lines


@dataclass(frozen=True, slots=True)
class Difference:
    """A case that is decided otherwise. ``kind``: its plan, only the details of its steps, or only
    what people read."""

    case: str
    kind: str
    look: int
    lines: tuple[str, ...]


def differences(recorded: Recorded) -> Iterator[Difference]:
    """Decide a case anew until its plan is another one. What follows from another plan says
    nothing."""
    name, carried = recorded.case.name, begin(recorded.case)
    for number, (before, now) in enumerate(
        zip(recorded.decided, play(recorded.case, carried), strict=True)
    ):
        if before == now:
            continue
        old, new = [*map(without_detail, before)], [*map(without_detail, now)]
        if old != new:
            yield Difference(name, PLAN, number, _changed(old, new))
            return
        yield Difference(name, DETAILS, number, _changed(before, now))
    last = recorded.case.looks[-1]
    words = words_of(carried.at(last), last.fleet)
    if words != recorded.words:
        yield Difference(name, WORDS, len(recorded.case.looks) - 1, _changed(recorded.words, words))


def differences_of_line(line: str) -> Iterator[Difference]:
    """Decide a case anew, as it stands in its archive."""
    yield from differences(read(line, _forms()))


def _changed(before: list[str], now: list[str]) -> tuple[str, ...]:
    lines = [
        line
        for line in unified_diff(before, now, lineterm="", n=0)
        if not line.startswith(("---", "+++", "@@"))
    ]
    left = len(lines) - _SHOWN
    return (*lines[:_SHOWN], *([f"and {left} lines more"] if left > 0 else []))


def compare(archive: Path, part: int, parts: int) -> list[Difference]:
    """Repeat each so many-th case of an archive."""
    return [
        difference
        for line in lines_of(archive)[part::parts]
        for difference in differences_of_line(line)
    ]


def compare_all(archives: Iterable[Path]) -> Iterator[tuple[Path, list[Difference]]]:
    """Repeat every case, on all processors."""
    parts = (cpu_count() or 1) * 4
    with ProcessPoolExecutor(cpu_count()) as processes:
        going = [
            (archive, [processes.submit(compare, archive, part, parts) for part in range(parts)])
            for archive in archives
        ]
        for archive, jobs in going:
            yield archive, [difference for job in jobs for difference in job.result()]


@cache
def _forms() -> Forms:
    return case_forms()
