"""What a run tries of cases that are many and alike: those whose files changed since the last full `make slow`, and one in eight.

The eighth is drawn by the hash of the commit, so each commit tries other cases. With ``WHOLE=1`` (`make slow`) every case is tried.
``python -m support.sampling`` notes the commit that a full run tried, in ``tests/slow.json``.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from zlib import crc32

ROOT = Path(__file__).parents[2]
NOTED = ROOT / "tests" / "slow.json"
# Cases are many: a full run takes them all, any other one in so many.
ONE_IN = 1 if os.environ.get("WHOLE") else 8


def tried(case: str, *files: str | Path) -> bool:
    """Tell whether to try a case. ``files``: those that it is about, from the project's root."""
    return ONE_IN == 1 or crc32(f"{commit()} {case}".encode()) % ONE_IN == 0 or any(str(file) in changed() for file in files)


def some(cases: Iterable[str], one_in: int = ONE_IN) -> list[str]:
    """Choose one in so many of these cases, others with each commit; at least one."""
    drawn = sorted(cases, key=lambda case: crc32(f"{commit()} {case}".encode()))
    chosen = {*drawn[: -(-len(drawn) // one_in)]}
    return [case for case in cases if case in chosen]


@cache
def commit() -> str:
    """The hash of the commit that is checked out; of none where there is no git."""
    return _git("rev-parse", "HEAD").strip() or "none"


@cache
def changed() -> frozenset[str]:
    """The files that differ from the commit of the last full run; of none where that commit is not there, as in a shallow clone."""
    noted = json.loads(NOTED.read_text(encoding="utf-8"))["commit"] if NOTED.exists() else ""
    if not noted:
        return frozenset()
    listed = _git("diff", "--name-only", noted) + _git("ls-files", "--others", "--exclude-standard")
    return frozenset(listed.splitlines())


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout if done.returncode == 0 else ""


def main() -> int:
    """Note the commit that a full run has tried."""
    if dirty := _git("status", "--porcelain", "--untracked-files=no"):
        print(f"not noted: commit these files first, and run `make slow` again:\n{dirty}", file=sys.stderr)  # noqa: T201
        return 1
    NOTED.write_text(json.dumps({"commit": commit()}) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
