"""The cache that all builders share: an artifact is there as a whole or not at all, and the first to publish it wins."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

from autoscaler_workbench.shared_build.files import put_first

Clock = Callable[[], float]
Sleep = Callable[[float], None]


class ArtifactDiffersError(Exception):
    """A task was built twice and came to different bytes: it is not reproducible, and nobody knows which ones to trust."""


class Link:
    """The one wire between all instances and the cache: a stand-in for its bandwidth.

    A file says until when it is busy. Each transfer is put behind the last one, and takes its size divided by the bandwidth.
    """

    def __init__(self, path: Path, bytes_per_second: float, clock: Clock, sleep: Sleep) -> None:
        self._path, self._bytes_per_second, self._clock, self._sleep = path, bytes_per_second, clock, sleep

    def carry(self, size: int) -> None:
        """Wait until so many bytes are through. The kernel unlocks the file of a process that is killed; what it had sent is sent."""
        with self._path.open("a+b") as wire:
            fcntl.flock(wire, fcntl.LOCK_EX)
            wire.seek(0)
            now = self._clock()
            busy_until = max(now, float(wire.read() or 0)) + size / self._bytes_per_second
            wire.truncate(0)
            wire.write(repr(busy_until).encode())
        self._sleep(busy_until - now)


class Cache:
    """Artifacts as files: ``whole`` has those that are published, ``partial`` what is being written, or was when its writer was killed."""

    def __init__(self, folder: Path, link: Link) -> None:
        self._whole, self._partial, self._link = folder / "whole", folder / "partial", link
        self._whole.mkdir(parents=True, exist_ok=True)
        self._partial.mkdir(exist_ok=True)

    def published(self) -> set[str]:
        """Return the names of all that is published."""
        return set(os.listdir(self._whole))  # noqa: PTH208 - called a hundred times a second

    def has(self, name: str) -> bool:
        """Tell whether an artifact is published."""
        return (self._whole / name).exists()

    def read(self, name: str) -> bytes:
        """Fetch an artifact."""
        content = (self._whole / name).read_bytes()
        self._link.carry(len(content))
        return content

    def publish(self, name: str, content: bytes) -> bool:
        """Publish an artifact; False where another one was faster. A hard link appears whole, and fails where the name is taken."""
        if not self.has(name):
            self._link.carry(len(content))
        first = put_first(self._whole / name, content, partial=self._partial, durable=True)
        if not first and (self._whole / name).read_bytes() != content:
            raise ArtifactDiffersError(f"{name}: built twice, with different bytes")
        return first

    def contents(self) -> dict[str, bytes]:
        """Return all that is published."""
        return {name: (self._whole / name).read_bytes() for name in self.published()}
