"""A gang of builders on this machine: started, some killed at random and replaced, and what came of it."""

import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from autoscaler_workbench.shared_build.cache import Cache, Link
from autoscaler_workbench.shared_build.graph import digest
from autoscaler_workbench.shared_build.order import Built, Order, read_logs

_LOOK_SECONDS = 0.01
_MOST_SECONDS = 300.0  # a build takes seconds; one that hangs is a bug


class BuilderFailedError(Exception):
    """A builder ended that was not killed, before all was published."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """So many builders with so many jobs each. ``kills``: so many are killed, each when a random number of tasks is published."""

    instances: int
    jobs: int
    kills: int = 0
    seed: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a build: by the clock, by the cache and by the logs."""

    seconds: float
    instance_seconds: float
    published: int
    digest: str
    built: Sequence[Built]
    killed: Sequence[str]

    @property
    def duplicates(self) -> list[Built]:
        """What was built although another builder had published it."""
        return [built for built in self.built if not built.first]

    @property
    def taken_over(self) -> list[Built]:
        """What was built after a claim on it had run out."""
        return [built for built in self.built if built.taken_over_from]


def build(order: Order, gang: Gang, folder: Path) -> Outcome:
    """Build it in a new folder, until every builder has left by itself."""
    order.write(folder)
    cache = Cache(folder, Link(folder / "link", order.link_bytes_per_second, time.time, time.sleep))
    random = Random(gang.seed)
    due = sorted(random.randrange(1, order.tasks) for _ in range(gang.kills))
    team, began = _Team(folder=folder, jobs=gang.jobs, random=random), time.monotonic()
    try:
        for _ in range(gang.instances):
            team.start()
        while team.at_work():
            if time.monotonic() - began > _MOST_SECONDS:
                raise BuilderFailedError(f"{folder}: not all is published after {_MOST_SECONDS:g} s")
            while due and len(cache.published()) >= due[0]:
                due.pop(0)
                team.replace_one()
            time.sleep(_LOOK_SECONDS)
    finally:
        team.end()
    made = cache.contents()
    return Outcome(
        seconds=time.monotonic() - began,
        instance_seconds=team.instance_seconds,
        published=len(made),
        digest=digest(made),
        built=tuple(read_logs(folder)),
        killed=tuple(team.killed),
    )


def join_late(folder: Path) -> float:
    """Let one more builder join, and return the seconds until it has left: where all is published, what a builder takes for itself."""
    team, began = _Team(folder=folder, jobs=1, random=Random(0)), time.monotonic()
    team.started = 99
    team.start()
    try:
        while team.at_work():
            time.sleep(_LOOK_SECONDS)
    finally:
        team.end()
    return time.monotonic() - began


@dataclass(slots=True, kw_only=True)
class _Team:
    """The processes of a gang."""

    folder: Path
    jobs: int
    random: Random
    live: dict[str, tuple[subprocess.Popen[str], float]] = field(default_factory=dict)
    started: int = 0
    killed: list[str] = field(default_factory=list)
    instance_seconds: float = 0.0

    def start(self) -> None:
        """Start a builder more."""
        self.started += 1
        name = f"builder-{self.started:02}"
        asked = [str(self.folder), name, str(self.jobs), "--seed", str(self.random.randrange(2**32))]
        command = [sys.executable, "-m", "autoscaler_workbench.shared_build.join", *asked]
        self.live[name] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True), time.monotonic()

    def at_work(self) -> bool:
        """Tell whether any builder has not left yet."""
        for name, (process, _) in list(self.live.items()):
            if process.poll() is not None:
                said = self._ended(name)
                if process.returncode:
                    raise BuilderFailedError(f"{name}: ended with {process.returncode}: {said.strip()}")
        return bool(self.live)

    def replace_one(self) -> None:
        """Kill a builder in the middle of what it does, and start another one."""
        name = self.random.choice(sorted(self.live))
        self.live[name][0].kill()
        self._ended(name)
        self.killed.append(name)
        self.start()

    def end(self) -> None:
        """Leave no process behind."""
        for name in list(self.live):
            self.live[name][0].kill()
            self._ended(name)

    def _ended(self, name: str) -> str:
        process, began = self.live.pop(name)
        _, said = process.communicate()
        self.instance_seconds += time.monotonic() - began
        return said
