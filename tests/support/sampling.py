"""The cases that a run tries where cases are many and alike: those whose files changed since the last full `make slow`, and a sample.

The commit's hash draws the sample, so each commit tries other cases. With ``WHOLE=1`` (`make slow`) every case is tried.
``python -m support.sampling`` notes the commit that a full run tried, in ``tests/slow.json``.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[2]
NOTED = ROOT / "tests" / "slow.json"
WHOLE = bool(os.environ.get("WHOLE"))
ONE_IN = 1 if WHOLE else 8
# In so many parts a full run tries long lists, so that all cores have work until the end.
PARTS = 8 if WHOLE else 1
EACH, DRAWN, CHANGED = "tried in a full run", "drawn by the commit", "whose files changed since the last full run"


def tried(case: str, *files: str | Path) -> str:
    """Why a run tries a case, or nothing if it does not. ``files``: those that the case is about, from the project's root."""
    if WHOLE:
        return EACH
    if any(str(file) in changed() for file in files):
        return CHANGED
    return DRAWN if _drawn(case) % ONE_IN == 0 else ""


def some(cases: Iterable[str], one_in: int = ONE_IN, *, most: int | None = None) -> list[str]:
    """Choose one in so many of these cases, or ``most`` of them; others with each commit, at least one, all with ``WHOLE=1``."""
    cases = list(cases)
    if WHOLE:
        return cases
    count = -(-len(cases) // one_in) if most is None else most
    chosen = {*sorted(cases, key=_drawn)[:count]}
    return [case for case in cases if case in chosen]


def _drawn(case: str) -> int:
    return int.from_bytes(sha256(f"{commit()} {case}".encode()).digest()[:4], "big")


@cache
def commit() -> str:
    """The hash of the commit that is checked out; "none" without git."""
    return _git("rev-parse", "HEAD").strip() or "none"


@cache
def changed() -> frozenset[str]:
    """The files that differ from the commit of the last full run; none if that commit is missing, as in a shallow clone."""
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
