"""``python -m corpus.missed``: finds a case for each bug that ``python -m corpus.power`` missed.

The candidates are what the tests that find these bugs decide and learn: ``pytest -p corpus.each
TEST...``; the command is printed where a test has no candidates yet. The shortest case that
notices a bug is made shorter, and added to ``recorded/bugs.xz``.
"""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from corpus import power
from corpus.candidates import EACH
from corpus.case import RECORDED, Recorded, lines_of, read, write_archive, written
from corpus.decided import decided_anew
from corpus.power import MISSED, bugs_of_the_decision
from corpus.single import made_by_hand
from planted.bug import Bug


def main() -> int:
    names = MISSED.read_text(encoding="utf-8").splitlines()
    missed = [bug for bug in bugs_of_the_decision("") if bug.name in names]
    files = {_test_of(file): file for file in EACH.glob("*.jsonl")}
    tests = dict.fromkeys(test for bug in missed for test in bug.found_by)
    if new := [test for test in tests if not any(name.startswith(test) for name in files)]:
        _say(f"pytest -p corpus.each {' '.join(map(repr, new))}")
    archive = RECORDED / "bugs.xz"
    by_hand = [written(Recorded(case=case)) for case in made_by_hand()]
    for bug in missed:
        lines = list(_candidates(bug, files))
        noticed = noticing(bug, by_hand) or noticing(bug, lines)
        if noticed is None:
            _say(f"no case among {len(lines)} for: {bug.name}")
            continue
        noticed = shortened(bug, noticed)
        write_archive(archive, dict.fromkeys([*lines_of(archive), written(noticed)]))
        _say(f"{len(noticed.case.looks)} looks for: {bug.name}: {noticed.case.name}")
    return 0


def _test_of(file: Path) -> str:
    with file.open(encoding="utf-8") as lines:
        return lines.readline().strip()


def _candidates(bug: Bug, files: dict[str, Path]) -> Iterator[str]:
    for name, file in files.items():
        if any(name.startswith(test) for test in bug.found_by):
            yield from file.read_text(encoding="utf-8").splitlines()[1:]


def noticing(bug: Bug, lines: list[str]) -> Recorded | None:
    """Return the first case, of short ones first, that is decided otherwise with a bug."""
    if not lines:
        return None
    power.take(lines)
    decided = [written(decided_anew(read(lines[number]))) for number in power.cases_for(bug)]
    verdict = power.verdict_among(bug, decided)
    return read(decided[verdict.case]) if verdict.case is not None else None


def shortened(bug: Bug, noticed: Recorded) -> Recorded:
    """Leave out looks at the end, and then at the beginning, as long as the bug is noticed."""
    for part in (lambda looks, n: looks[:n], lambda looks, n: looks[-n:]):
        looks = noticed.case.looks
        without, enough = 0, len(looks)
        while enough - without > 1:
            half = (without + enough) // 2
            case = decided_anew(Recorded(case=replace(noticed.case, looks=part(looks, half))))
            if power.verdict_among(bug, [written(case)]).how:
                noticed, enough = case, half
            else:
                without = half
    return noticed


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
