"""The released version that the upgrade begins with."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Release:
    """A version that people may run, and its commit."""

    version: str
    commit: str


NEWEST_RELEASE = Release("0.3.0", "d4c45eedc6bbf48fbe8496510055a34455c668fd")
