"""The cases that a run tries if cases are many and alike: a sample, and more of those whose files changed since the last full run.

The commit's hash draws, so each commit tries other cases; with ``CI=true`` more of them. With ``WHOLE=1``
(`make slow`) every case is tried.
``python -m support.sampling`` notes the commit that a full run tried, in ``tests/slow.json``.
"""

import json
import os
import subprocess
import sys
from collections.abc import Collection, Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
NOTED = ROOT / "tests" / "slow.json"
WHOLE = bool(os.environ.get("WHOLE"))
ONE_IN = 1 if WHOLE else 16
IN_CI = os.environ.get("CI") == "true"
ONE_IN_CHANGED = 1 if WHOLE else 8 if IN_CI else 16
ONE_IN_TIME_LINES = 1 if WHOLE else 8 if IN_CI else 12
# CI tries each test of the handlers and each walk; other runs half of those, and a third of the long ones of these.
ONE_IN_HANDLERS, ONE_IN_LONG_WALKS = (1, 1) if WHOLE or IN_CI else (2, 3)
# A run lives every second of the named hostile worlds. A planted bug names the world that finds it, and gets that one.
ONE_IN_WORLDS = 1 if WHOLE else 2
# A time-line with so many cases or more is tried with a third of them.
MANY, ONE_IN_MANY = 4, 3
# In so many parts a full run tries long lists, so that all cores have work until the end.
PARTS = 8 if WHOLE else 1
EACH, DRAWN, CHANGED = "tried in a full run", "drawn by the commit", "whose files changed since the last full run"


def tried(case: str, *files: str | Path) -> str:
    """Why a run tries a case, or nothing if it does not. ``files``: those that the case is about, from the project's root."""
    if WHOLE:
        return EACH
    if any(str(file) in changed() for file in files) and _drawn(case) % ONE_IN_CHANGED == 0:
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


def some_of_each(tests: Iterable[str]) -> list[str]:
    """Choose a third of the cases of each test that has many, at least one, others with each commit. ``tests``: "name[case]"."""
    cases: dict[str, list[str]] = {}
    for test in tests:
        cases.setdefault(test.partition("[")[0], []).append(test)
    return [test for mine in cases.values() for test in (some(mine, ONE_IN_MANY) if len(mine) >= MANY else mine)]


def are_named(words: Iterable[str]) -> bool:
    """Whether somebody named a file or a test, and so gets all of its cases. ``words``: pytest's arguments (`config.args`)."""
    return any(".py" in word for word in words)


def leave_out(config: Any, items: list[Any], left_out: Collection[Any]) -> None:
    """Take some of the tests that pytest has collected out of the run."""
    if left_out:
        config.hook.pytest_deselected(items=[*left_out])
        items[:] = [item for item in items if item not in left_out]


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
