"""``python -m corpus.fill [ARCHIVE]``: adds cases for branches of the decision that have none.

The candidates are what ``pytest -p corpus.seek TEST...`` finds; without candidates, the branches
are written down for it. Those that take most for their length are added to
``recorded/branches.xz``, or to another archive.
"""

import json
import sys

from corpus.branches import Arc, arcs_of
from corpus.candidates import FOLDER
from corpus.case import RECORDED, archives, lines_of, read, write_archive, written
from corpus.decided import decided_anew
from corpus.measured import branches_of_all
from corpus.play import play

_MISSED = FOLDER / "missed.json"


def missed_branches() -> set[Arc]:
    return {(file, start, end) for file, start, end in json.loads(_MISSED.read_text("utf-8"))}


def main(name: str = "branches") -> int:
    files = sorted(FOLDER.glob("branches-*.jsonl"))
    if not files:
        FOLDER.mkdir(parents=True, exist_ok=True)
        _MISSED.write_text(json.dumps(branches_of_all(archives()).missed), encoding="utf-8")
        print("pytest -p corpus.seek TEST...")  # noqa: T201
        return 1
    missed, archive = missed_branches(), RECORDED / f"{name}.xz"
    takes = dict[str, set[Arc]]()
    for line in (line for file in files for line in file.read_text("utf-8").splitlines()):
        case = read(line).case
        takes[line] = missed & arcs_of(lambda: list(play(case)))  # noqa: B023 - called at once
    added = lines_of(archive) if archive.exists() else []
    while line := max(takes, key=lambda line: len(takes[line] & missed) / len(line), default=""):
        if not takes[line] & missed:
            break
        missed -= takes.pop(line)
        added.append(written(decided_anew(read(line))))
    write_archive(archive, added)
    print(f"{archive.stem}: {len(added)} cases; {len(missed)} branches have none")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
