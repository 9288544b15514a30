"""Repeat the recorded decisions, and print what is decided otherwise now: `make corpus`. RECORD=1
records what is decided now."""

import argparse
import sys
from collections import Counter
from pathlib import Path
from time import perf_counter

from corpus.branches import Arc
from corpus.case import archives, lines_of, read, write_archive, written
from corpus.compare import Difference, compare_all
from corpus.decided import decided_anew
from corpus.impossible import why_impossible
from corpus.measured import branches_of_all

_SHOWN = 10  # differences of each kind


def main() -> int:
    parser = argparse.ArgumentParser(prog="make corpus", description=__doc__)
    parser.add_argument(
        "--record", action="store_true", help="say in the commit which cases differ, and why"
    )
    parser.add_argument(
        "--branches",
        action="store_true",
        help="print which share of the branches has a case; takes three times as long",
    )
    asked = parser.parse_args()
    if asked.branches:
        _print_branches()
        return 0
    began, found = perf_counter(), list[Difference]()
    for archive, differences in compare_all(archives()):
        found += differences
        count = len({one.case for one in differences})
        _say(f"{archive.stem}: {len(lines_of(archive))} cases, {count} differ")
        if asked.record and differences:
            _record(archive, {one.case for one in differences})
    _print(found)
    _say(f"{perf_counter() - began:.0f} s")
    return 1 if found and not asked.record else 0


def _print(found: list[Difference]) -> None:
    for kind, count in Counter(one.kind for one in found).items():
        _say(f"\n{kind}: {count} differ")
        for one in [one for one in found if one.kind == kind][:_SHOWN]:
            _say(f"  {one.case}, look {one.look}")
            for line in one.lines:
                _say(f"    {line}")


def _record(archive: Path, names: set[str]) -> None:
    """Write what is decided now, in place of what was; all other lines stay as they are."""
    lines = lines_of(archive)
    for number, line in enumerate(lines):
        recorded = read(line)
        if recorded.case.name in names:
            lines[number] = written(decided_anew(recorded))
    write_archive(archive, lines)
    _say(f"{archive.stem}: recorded")


def _print_branches() -> None:
    measured = branches_of_all(archives())
    for room, (taken, count) in measured.by_room().items():
        _say(f"{room:<12}{taken:>6} of {count:>6}")
    reasons = {arc: why for arc in measured.missed if (why := why_impossible(arc))}
    counts = f"{len(measured.taken)} of {len(measured.all)}"
    _say(f"together: {counts} branches of the functions that the decision enters")
    _say(f"{len(reasons)} cannot happen:")
    for arc in measured.missed:
        if arc in reasons:
            _say(f"  {_told(arc)}: {reasons[arc]}")
    _say(f"{len(measured.missed) - len(reasons)} have no case:")
    for arc in measured.missed:
        if arc not in reasons:
            _say(f"  {_told(arc)}")


def _told(arc: Arc) -> str:
    file, start, end = arc
    return f"{file}:{start} -> {end if end > 0 else 'out'}"


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
