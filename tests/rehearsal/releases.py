"""The released version that the upgrade begins with."""

import re
import subprocess
from dataclasses import dataclass

from packaging_root import ROOT

_TAG = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")


@dataclass(frozen=True, slots=True)
class Release:
    """A version that people may run, and its commit."""

    version: str
    commit: str


# A clone without tags rehearses the same upgrade as one with them.
_NEWEST_KNOWN = Release("0.3.0", "d4c45eedc6bbf48fbe8496510055a34455c668fd")


def newest_release() -> Release:
    """The newest release before the commit that is checked out: the newest tag, unless the version named here is newer."""
    head = _git("rev-parse", "HEAD").strip()
    tagged = [Release(tag, commit) for tag in _git("tag").split() if _TAG.fullmatch(tag) and (commit := _commit(tag)) != head]
    return max([*tagged, _NEWEST_KNOWN], key=_order)


def _order(release: Release) -> tuple[int, ...]:
    number = _TAG.fullmatch(release.version)
    return tuple(int(part) for part in number.groups()) if number else ()


def _commit(tag: str) -> str:
    return _git("rev-list", "-n", "1", tag).strip()


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout
