"""``python -m corpus.missed [WORD]``: finds a case for each bug that the corpus misses.

The candidates are every decision of the tests that find these bugs: ``CORPUS_EACH=missed pytest -p
corpus.plugin TEST...``; without candidates, that command is printed. What notices a bug is added to
``recorded/bugs.xz``.
"""

import sys

from corpus.candidates import FOLDER
from corpus.case import RECORDED, archives, lines_of, read, write_archive, written
from corpus.decided import decided_anew
from corpus.power import bugs_of_the_decision, cases_for, missed_by, notices
from planted.bug import Bug


def main(word: str = "") -> int:
    recorded = [line for archive in archives() for line in lines_of(archive)]
    missed = missed_by(recorded, bugs_of_the_decision(word))
    files = sorted(FOLDER.glob("missed-*.jsonl"))
    if not files:
        tests = dict.fromkeys(test for bug in missed for test in bug.found_by)
        print("CORPUS_EACH=missed pytest -p corpus.plugin", *map(repr, tests))  # noqa: T201
        return 1 if missed else 0
    candidates = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    candidates = [written(decided_anew(read(line))) for line in candidates]
    missed_by(candidates, [])  # from now on these are the cases
    found = {bug.name: _noticing(bug) for bug in missed}
    archive = RECORDED / "bugs.xz"
    before = lines_of(archive) if archive.exists() else []
    write_archive(
        archive, dict.fromkeys([*before, *(candidates[n] for n in found.values() if n is not None)])
    )
    for name, number in found.items():
        print("no case" if number is None else read(candidates[number]).case.name, "for:", name)  # noqa: T201
    return 0


def _noticing(bug: Bug) -> int | None:
    """The shortest candidate that notices a bug."""
    return next((number for number in cases_for(bug) if notices(bug, [number])), None)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
