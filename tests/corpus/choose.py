"""Chooses cases among candidates: so many for each branch, pair of step and reason, shape of plan.

``python -m corpus.choose SOURCE...``: reads ``out/corpus/SOURCE*.jsonl``, writes
``recorded/SOURCE.xz`` anew.
"""

import pickle
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from os import cpu_count
from pathlib import Path

from corpus.branches import Arc, arcs_of, branches
from corpus.candidates import FOLDER
from corpus.case import (
    RECORDED,
    archives,
    lines_of,
    read,
    write_archive,
    written,
)
from corpus.decided import decided_anew
from corpus.neutral import reasons_of
from corpus.play import play

_OF_EACH = 3  # cases for each branch, pair and shape
_SECONDS = {
    "suite": 15.0,
    "worlds": 20.0,
    "purpose": 15.0,
}  # of all plays of a source, without tracing


@dataclass(frozen=True, slots=True)
class Traced:
    """What a candidate shows. ``things``: branches, pairs of step and reason, and the shape of each
    look's plan."""

    file: Path
    number: int
    seconds: float
    things: frozenset[Hashable]


def traced(file: Path, numbers: Iterable[int]) -> list[Traced]:
    shown, wanted = list[Traced](), set(numbers)
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if number in wanted:
                case = read(line).case
                decided: list[list[str]] = []
                began = time.process_time()
                arcs = arcs_of(lambda: decided.extend(play(case)))  # noqa: B023 - called at once
                seconds = (time.process_time() - began) / 3  # tracing takes three times as long
                shown.append(Traced(file, number, seconds, frozenset({*arcs, *_shapes(decided)})))
    return shown


def _shapes(decided: list[list[str]]) -> Iterator[Hashable]:
    for lines in decided:
        pairs = reasons_of(lines)
        yield from pairs
        if len(pairs) > 1:
            yield frozenset(pairs)


def chosen(candidates: list[Traced], known: Counter[Hashable], seconds: float) -> list[Traced]:
    """Take again and again the one that shows most that is seen too seldom, by its seconds, until
    nothing is or time is up."""
    useful = {thing for one in candidates for thing in one.things if not _is_no_branch(thing)}
    left, taken, spent = {(one.file, one.number): one for one in candidates}, [], 0.0
    seen = Counter({thing: known[thing] for thing in useful})
    by_thing: dict[Hashable, set[tuple[Path, int]]] = defaultdict(set)
    worth: Counter[tuple[Path, int]] = Counter()
    for key, one in left.items():
        for thing in one.things & useful:
            if seen[thing] < _OF_EACH:
                by_thing[thing].add(key)
                worth[key] += 1
    while left and spent < seconds:
        key = max(left, key=lambda key: worth[key] / (0.02 + left[key].seconds))
        if worth[key] == 0:
            break
        one = left.pop(key)
        taken.append(one)
        spent += one.seconds
        for thing in one.things & useful:
            seen[thing] += 1
            if seen[thing] == _OF_EACH:
                for other in by_thing[thing]:
                    worth[other] -= 1
    return taken


def _is_arc(thing: Hashable) -> bool:
    return isinstance(thing, tuple) and len(thing) == 3


def _is_no_branch(thing: Hashable) -> bool:
    return _is_arc(thing) and thing not in _BRANCHES


_BRANCHES: set[Arc] = set()


def main(sources: list[str]) -> None:
    known = _known(sources)
    for source in sources:
        files = sorted(FOLDER.glob(f"{source}*.jsonl"))
        candidates = _all_traced(source, files)
        _BRANCHES.update(
            branches([arc for one in candidates for arc in one.things if _is_arc(arc)]).all
        )
        taken = chosen(candidates, known, _SECONDS[source])
        for one in taken:
            known.update(one.things)
        _write(source, taken)
        seconds = sum(one.seconds for one in taken)
        print(f"{source}: {len(taken)} of {len(candidates)} candidates, {seconds:.0f} s")  # noqa: T201


def _known(sources: list[str]) -> Counter[Hashable]:
    """Count what the archives of all other sources show."""
    known: Counter[Hashable] = Counter()
    for archive in archives():
        if archive.stem not in sources:
            (file := FOLDER / f"{archive.stem}.known").write_text(
                "\n".join(lines_of(archive)), encoding="utf-8"
            )
            for one in _all_traced(f"known-{archive.stem}", [file]):
                known.update(one.things)
    return known


def _all_traced(source: str, files: list[Path]) -> list[Traced]:
    kept = FOLDER / f"{source}.traced"  # to choose again by other bounds, without tracing anew
    if not kept.exists():
        parts = [
            (file, range(first, first + 40))
            for file in files
            for first in range(0, _count(file), 40)
        ]
        with ProcessPoolExecutor(cpu_count()) as processes:
            kept.write_bytes(
                pickle.dumps(
                    [
                        one
                        for many in processes.map(traced, *zip(*parts, strict=True))
                        for one in many
                    ]
                )
            )
    return pickle.loads(kept.read_bytes())  # noqa: S301 - we wrote it


def _count(file: Path) -> int:
    with file.open(encoding="utf-8") as lines:
        return sum(1 for _ in lines)


def _write(source: str, taken: list[Traced]) -> None:
    lines: list[str] = []
    numbers: dict[Path, set[int]] = defaultdict(set)
    for one in taken:
        numbers[one.file].add(one.number)
    for file, wanted in numbers.items():
        with file.open(encoding="utf-8") as all_lines:
            lines += [line for number, line in enumerate(all_lines) if number in wanted]
    write_archive(
        RECORDED / f"{source}.xz",
        (written(decided_anew(read(line))) for line in lines),
    )


if __name__ == "__main__":
    main(sys.argv[1:])
