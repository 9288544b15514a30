"""One builder: takes tasks that are ready, in an order of its own, several at once, and leaves when all are published."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random
from threading import Lock

from autoscaler_workbench.shared_build.cache import Cache, Clock, Sleep
from autoscaler_workbench.shared_build.claims import Claim, Claims
from autoscaler_workbench.shared_build.graph import Task
from autoscaler_workbench.shared_build.order import Built

LOOK_SECONDS = 0.01  # between two readings of what is published


@dataclass(slots=True, kw_only=True)
class Builder:
    """An instance. What it built or fetched once it has; everything else it gets from the cache."""

    name: str
    tasks: Sequence[Task]
    cache: Cache
    claims: Claims
    log: Callable[[Built], None]
    clock: Clock
    sleep: Sleep
    _own: dict[str, bytes] = field(default_factory=dict)
    _fetching: dict[str, Lock] = field(default_factory=dict)
    _at_work: set[str] = field(default_factory=set)
    _missing: Sequence[Task] = ()
    _ready: Sequence[Task] = ()
    _looked_at: float = float("-inf")
    _failed: bool = False
    _lock: Lock = field(default_factory=Lock)

    def run(self, jobs: int, random: Random) -> None:
        """Build until all is published, so many tasks at once. Raises what a task raised."""
        self._missing = self.tasks
        with ThreadPoolExecutor(jobs) as pool:
            slots = [pool.submit(self._slot, Random(random.random())) for _ in range(jobs)]  # noqa: S311
        for slot in slots:
            slot.result()

    def _slot(self, random: Random) -> None:
        try:
            while not self._failed and (ready := self._look()) is not None:
                random.shuffle(ready)
                if (taken := self._take(ready)) is None:
                    self.sleep(LOOK_SECONDS)
                else:
                    self._build(*taken)
        except BaseException:
            self._failed = True
            raise

    def _look(self) -> list[Task] | None:
        """Return the tasks that are ready; None when all are published."""
        with self._lock:
            now = self.clock()
            if now - self._looked_at >= LOOK_SECONDS:
                self._looked_at, there = now, self.cache.published()
                self._missing = [task for task in self._missing if task.name not in there]
                self._ready = [task for task in self._missing if there.issuperset(task.needs)]
            return list(self._ready) if self._missing else None

    def _take(self, ready: Sequence[Task]) -> tuple[Task, Claim] | None:
        for task in ready:
            with self._lock:  # another slot of this builder may be at it; without claims, too
                if task.name in self._at_work:
                    continue
                self._at_work.add(task.name)
            if (claim := self.claims.take(task.name)) and not self.cache.has(task.name):
                return task, claim
            with self._lock:
                self._at_work.remove(task.name)
        return None

    def _build(self, task: Task, claim: Claim) -> None:
        began = self.clock()
        inputs = [self._artifact(name) for name in task.needs]
        fetched = self.clock()
        self.sleep(task.wait_seconds)
        content = task.artifact(inputs)
        built = self.clock()
        first = self.cache.publish(task.name, content)
        self._own[task.name] = content
        with self._lock:
            self._at_work.remove(task.name)
            self._looked_at = float("-inf")  # what needed this one is ready now
        self.log(
            Built(
                builder=self.name,
                task=task.name,
                first=first,
                fetch_seconds=fetched - began,
                build_seconds=built - fetched,
                publish_seconds=self.clock() - built,
                taken_over_from=claim.taken_over_from,
            )
        )

    def _artifact(self, name: str) -> bytes:
        with self._lock:
            lock = self._fetching.setdefault(name, Lock())
        with lock:  # a builder fetches each once, whatever its slots do
            if name not in self._own:
                self._own[name] = self.cache.read(name)
            return self._own[name]
