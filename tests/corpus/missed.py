"""``python -m corpus.missed [WORD]``: finds a case for each bug that the corpus misses.

The candidates are every decision of the tests that find these bugs: ``CORPUS_EACH=missed pytest -p
corpus.plugin TEST...``; without candidates, that command is printed. What notices a bug is added to
``recorded/bugs.xz``.
"""

import sys

from corpus.candidates import FOLDER
from corpus.case import RECORDED, archives, lines_of, read, write_archive, written
from corpus.decided import decided_anew
from corpus.power import bugs_of_the_decision, verdicts


def main(word: str = "") -> int:
    recorded = [line for archive in archives() for line in lines_of(archive)]
    bugs = bugs_of_the_decision(word)
    missed = [bug for bug, verdict in verdicts(recorded, bugs) if not verdict.how]
    files = sorted(FOLDER.glob("missed-*.jsonl"))
    if not files:
        tests = dict.fromkeys(test for bug in missed for test in bug.found_by)
        print("CORPUS_EACH=missed pytest -p corpus.plugin", *map(repr, tests))  # noqa: T201
        return 1 if missed else 0
    candidates = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    candidates = [written(decided_anew(read(line))) for line in candidates]
    noticing = {bug.name: verdict.case for bug, verdict in verdicts(candidates, missed)}
    archive = RECORDED / "bugs.xz"
    before = lines_of(archive) if archive.exists() else []
    added = (candidates[number] for number in noticing.values() if number is not None)
    write_archive(archive, dict.fromkeys([*before, *added]))
    for name, number in noticing.items():
        print("no case" if number is None else read(candidates[number]).case.name, "for:", name)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
