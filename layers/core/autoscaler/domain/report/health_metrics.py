"""Metrics of build results and machines: results, failures in a row, readings of the node monitors."""

from collections.abc import Callable, Iterator, Mapping

from autoscaler.domain.facts.health import Health
from autoscaler.domain.facts.snapshot import ControllerView
from autoscaler.domain.learn import Lesson
from autoscaler.domain.report.datum import BYTES, COUNT, SECONDS, Datum, Dimensions, one
from autoscaler.domain.scale_in.build_results import Tally
from autoscaler.domain.situation.pool_view import PoolView

Healths = Mapping[str, Mapping[str, Health]]  # by controller, then by node; the built-in node is ""
Reading = Callable[[Health], float | None]
_READINGS: tuple[tuple[str, str, Reading], ...] = (
    ("DiskFreeBytes", BYTES, lambda health: health.disk_bytes),
    ("MemoryFreeBytes", BYTES, lambda health: health.memory_bytes),
    ("ResponseSeconds", SECONDS, lambda health: health.response_seconds),
)


def results_of(lesson: Lesson | None, pool: str, dimensions: Dimensions) -> Iterator[Datum]:
    """Count the builds of a pool that succeeded and failed since the last look; nothing if none ended."""
    tally = lesson.tallies.get(pool, Tally()) if lesson else Tally()
    for name, count in (("BuildsSucceeded", tally.succeeded), ("BuildsFailed", tally.failed)):
        if count:
            yield one(name, count, COUNT, dimensions)


def streak_of(lesson: Lesson | None, pool: PoolView, dimensions: Dimensions) -> Iterator[Datum]:
    """Return the most failures in a row of any node of the pool."""
    streaks = lesson.learned.streaks if lesson else {}
    failures = [streaks[agent.node.name].failures for agent in pool.agents if agent.node and agent.node.name in streaks]
    yield one("NodeFailureStreak", max(failures, default=0), COUNT, dimensions)


def health_of_agents(pool: PoolView, healths: Healths, dimensions: Dimensions) -> Iterator[Datum]:
    """Return the worst reading of each kind among the pool's connected agents."""
    told = healths.get(pool.controller, {})
    nodes = [agent.node.name for agent in pool.agents if agent.node and not agent.node.offline]
    for name, unit, reading in _READINGS:
        values = [value for node in nodes if node in told and (value := reading(told[node])) is not None]
        if values:
            yield one(f"Agent{name}", worst_of(f"Agent{name}", values), unit, dimensions)


def health_of_controller(view: ControllerView, healths: Healths, dimensions: Dimensions) -> Iterator[Datum]:
    """Describe the controller's own machine: response time, free disk and memory, builds on it."""
    yield one("ControllerResponseSeconds", view.response_seconds, SECONDS, dimensions)
    own = healths.get(view.name, {}).get("", Health())
    for name, unit, reading in _READINGS[:2]:
        if (value := reading(own)) is not None:
            yield one(f"Controller{name}", value, unit, dimensions)
    if view.complete:
        busy = sum(len(node.builds) for node in view.nodes if not node.agent)
        yield one("ControllerExecutorsBusy", busy, COUNT, dimensions)


def worst_of(name: str, values: list[float]) -> float:
    """Return the lowest of free space, and the highest of anything else."""
    return min(values) if name.endswith("FreeBytes") else max(values)
