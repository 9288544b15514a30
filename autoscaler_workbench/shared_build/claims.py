"""Advisory claims: who builds a task says so for a while, and others take another one meanwhile.

A claim is a hint, never a lock: correct without any, since publishing decides. Of a task's n-th claim there is one file, made by whoever is
first when the one before has run out; none is ever removed or written again, so that two who see the same old claim cannot both replace it.
"""

import json
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from autoscaler_workbench.shared_build.cache import Clock
from autoscaler_workbench.shared_build.files import put_first


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A task that is ours for a while, and whose claim on it had run out."""

    task: str
    taken_over_from: str | None


class Claims:
    """Claims as files. ``lease_seconds``: longer than any task takes; 0: no claims at all."""

    def __init__(self, folder: Path, owner: str, lease_seconds: float, clock: Clock) -> None:
        self._folder, self._partial = folder / "claims", folder / "partial"
        self._owner, self._lease_seconds, self._clock = owner, lease_seconds, clock
        self._held_until: dict[str, float] = {}  # saves reading the same files again and again
        self._folder.mkdir(parents=True, exist_ok=True)
        self._partial.mkdir(exist_ok=True)

    def take(self, task: str) -> Claim | None:
        """Claim a task, unless somebody has it."""
        if not self._lease_seconds:
            return Claim(task=task, taken_over_from=None)
        now, before = self._clock(), None
        if now < self._held_until.get(task, now):
            return None
        for number in count():
            path = self._folder / f"{task}.{number}"
            if self._make(path, now + self._lease_seconds):
                return Claim(task=task, taken_over_from=before)
            holder = json.loads(path.read_bytes())
            if now < holder["until"]:
                self._held_until[task] = holder["until"]
                return None
            before = holder["owner"]
        raise AssertionError

    def _make(self, path: Path, until: float) -> bool:
        if path.exists():
            return False
        content = json.dumps({"owner": self._owner, "until": until}).encode()
        return put_first(path, content, partial=self._partial, durable=False)
