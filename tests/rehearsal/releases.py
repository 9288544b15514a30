"""The released version that the upgrade begins with: the newest tag, or 0.2.0, which has none."""

import re
import subprocess
from dataclasses import dataclass

from packaging_root import ROOT

_TAG = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")


@dataclass(frozen=True, slots=True)
class Release:
    """``knows_reservations``: it reads the record of an agent that a person has, and the keys of the rehearsal's fleet file."""

    version: str
    commit: str
    knows_reservations: bool = True


# Its last commit: the notes of 0.2.0 are unchanged since.
_UNTAGGED = Release("0.2.0", "f48fb6908599eeb7b6d18dc7d7dc4d6c8d584f21", knows_reservations=False)


def newest_release() -> Release:
    """The newest tagged release before the commit that is checked out."""
    head = _git("rev-parse", "HEAD").strip()
    tagged = [Release(tag, commit) for tag in _git("tag").split() if _TAG.fullmatch(tag) and (commit := _commit(tag)) != head]
    return max(tagged, key=_order, default=_UNTAGGED)


def _order(release: Release) -> tuple[int, ...]:
    number = _TAG.fullmatch(release.version)
    return tuple(int(part) for part in number.groups()) if number else ()


def _commit(tag: str) -> str:
    return _git("rev-list", "-n", "1", tag).strip()


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout
