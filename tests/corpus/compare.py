"""Repeats recorded cases, and says which are decided otherwise now, and how."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from difflib import unified_diff
from os import cpu_count
from pathlib import Path

from corpus.case import Recorded, lines_of, read
from corpus.decided import decided_anew
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


def differences(before: Recorded) -> Iterator[Difference]:
    """Decide a case anew until its plan is another one. What follows from another plan says
    nothing."""
    name, now = before.case.name, decided_anew(before)
    for look, (old, new) in enumerate(zip(before.decided, now.decided, strict=True)):
        plans = [*map(without_detail, old)], [*map(without_detail, new)]
        if plans[0] != plans[1]:
            yield Difference(name, PLAN, look, _changed(*plans))
            return
        if old != new:
            yield Difference(name, DETAILS, look, _changed(old, new))
    if before.words != now.words:
        yield Difference(name, WORDS, look, _changed(before.words, now.words))


def is_decided_otherwise(before: Recorded) -> bool:
    """Decide a case anew until any line of a look differs, or of what people read in the end:
    whatever `make corpus` tells."""
    carried, last = begin(before.case), before.case.looks[-1]
    looks = zip(before.decided, play(before.case, carried), strict=True)
    if any(old != new for old, new in looks):
        return True
    return before.words != words_of(carried.at(last), last.fleet)


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
    cases = lines_of(archive)[part::parts]
    return [difference for line in cases for difference in differences(read(line))]


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
