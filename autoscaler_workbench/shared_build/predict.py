"""How long a build takes on so many instances: its tasks played in simulated time, on slots and one wire. Nothing is fitted."""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random

from autoscaler_workbench.shared_build.builder import LOOK_SECONDS
from autoscaler_workbench.shared_build.gang import Outcome
from autoscaler_workbench.shared_build.graph import Task
from autoscaler_workbench.shared_build.order import Order


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """What a run on one slot shows: how long each task takes to build, what comes on top of each, and what a builder takes for itself."""

    build_seconds: Mapping[str, float]
    more_seconds: float
    builder_seconds: float
    link_bytes_per_second: float


def pace_of(order: Order, single: Outcome, builder_seconds: float) -> Pace:
    """Read it off a run on one slot. ``builder_seconds``: what a builder takes that finds all published."""
    build_seconds = {built.task: built.build_seconds for built in single.built}
    wire = sum(task.size for task in order.graph()) / order.link_bytes_per_second
    more = (single.seconds - builder_seconds - sum(build_seconds.values()) - wire) / len(build_seconds)
    return Pace(
        build_seconds=build_seconds,
        more_seconds=more,
        builder_seconds=builder_seconds,
        link_bytes_per_second=order.link_bytes_per_second,
    )


def predict(tasks: Sequence[Task], pace: Pace, *, instances: int, jobs: int, random: Random) -> float:
    """Return the seconds until the last builder has left."""
    play, numbers = _Play(tasks=tasks, pace=pace, random=random), count()
    builders = [_Builder(missing=tasks) for _ in range(instances)]
    due = [(random.uniform(0.0, LOOK_SECONDS), next(numbers), play.slot(builder)) for builder in builders for _ in range(jobs)]
    while due:
        play.now, _, slot = heapq.heappop(due)
        if (delay := next(slot, None)) is not None:
            heapq.heappush(due, (play.now + delay, next(numbers), slot))
    return play.now + pace.builder_seconds


@dataclass(slots=True, kw_only=True)
class _Builder:
    own: set[str] = field(default_factory=set)
    looked_at: float = float("-inf")
    missing: Sequence[Task]
    ready: Sequence[Task] = ()


@dataclass(slots=True, kw_only=True)
class _Play:
    tasks: Sequence[Task]
    pace: Pace
    random: Random
    now: float = 0.0
    wire_free_at: float = 0.0
    published: set[str] = field(default_factory=set)
    taken: set[str] = field(default_factory=set)

    def slot(self, builder: _Builder) -> Iterator[float]:
        """Live as a builder's slot does; yields how long each thing takes."""
        size = {task.name: task.size for task in self.tasks}
        while self._look(builder).missing:
            ready = [task for task in builder.ready if task.name not in self.taken]
            if not ready:
                yield LOOK_SECONDS
                continue
            task = self.random.choice(ready)
            self.taken.add(task.name)
            for name in task.needs:
                if name not in builder.own:
                    builder.own.add(name)
                    yield self._carry(size[name])
            yield self.pace.build_seconds[task.name] + self.pace.more_seconds
            yield self._carry(task.size)
            builder.own.add(task.name)
            self.published.add(task.name)
            builder.looked_at = float("-inf")

    def _look(self, builder: _Builder) -> _Builder:
        if self.now - builder.looked_at >= LOOK_SECONDS:
            builder.looked_at = self.now
            builder.missing = [task for task in builder.missing if task.name not in self.published]
            builder.ready = [task for task in builder.missing if self.published.issuperset(task.needs)]
        return builder

    def _carry(self, size: int) -> float:
        self.wire_free_at = max(self.now, self.wire_free_at) + size / self.pace.link_bytes_per_second
        return self.wire_free_at - self.now
