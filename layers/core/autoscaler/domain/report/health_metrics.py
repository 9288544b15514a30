"""Metrics of build results and machines: results, failures in a row, readings of the node monitors."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from autoscaler.domain.facts.nodes import Health
from autoscaler.domain.facts.snapshot import ControllerView
from autoscaler.domain.facts.telemetry import CONTROLLER, Telemetry
from autoscaler.domain.lessons import Lesson
from autoscaler.domain.report.datum import BYTES, COUNT, NONE, PERCENT, SECONDS, Datum, Dimensions, one
from autoscaler.domain.scale_in.replace import Tally
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.pool_view import PoolView

Healths = Mapping[str, Mapping[str, Health]]  # by controller, then by node; the built-in node is ""
Reports = Mapping[str, Telemetry]  # by machine


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """What is known of machines at one time: ``monitors`` of Jenkins, and what agents told last."""

    monitors: Healths
    reports: Reports
    now: float

    def of_agent(self, agent: Agent, node: str) -> tuple[Telemetry | None, Health]:
        """Return its last report, where that still says something of now, and its monitors."""
        report = self.reports.get(agent.record.machine)
        return self._fresh(report), self.monitors.get(agent.record.controller, {}).get(node, Health())

    def of_controller(self, name: str) -> tuple[Telemetry | None, Health]:
        """Return likewise what is known of a controller's own machine."""
        return self._fresh(self.reports.get(f"{CONTROLLER}{name}")), self.monitors.get(name, {}).get("", Health())

    def _fresh(self, report: Telemetry | None) -> Telemetry | None:
        return report if report and report.is_fresh(self.now) else None


def health_of_agents(pool: PoolView, readings: Readings, dimensions: Dimensions) -> Iterator[Datum]:
    """Return the worst figure of each kind among the pool's connected agents, those that a monitor took offline among them.

    An agent that tells nothing has only the disk that Jenkins' monitor sees: its memory there is MemFree, of which a healthy machine has
    none left.
    """
    told = [readings.of_agent(agent, agent.node.name) for agent in pool.agents if agent.node and _is_connected(agent)]
    for name, unit, figure in _FIGURES:
        if known := [value for report, monitors in told if (value := figure(report, monitors)) is not None]:
            yield one(name, worst_of(name, known), unit, dimensions)


def _is_connected(agent: Agent) -> bool:
    return agent.node is not None and (not agent.node.offline or agent.is_of_monitor)


Figure = Callable[[Telemetry | None, Health], float | None]
_FIGURES: tuple[tuple[str, str, Figure], ...] = (
    ("AgentDiskFreeBytes", BYTES, lambda report, monitors: report.disk_free if report else monitors.disk_bytes),
    ("AgentMemoryAvailableBytes", BYTES, lambda report, _: report.memory_soon if report else None),
    ("AgentGpuMemoryFreeBytes", BYTES, lambda report, _: report.gpu_memory_free if report else None),
    ("AgentResponseSeconds", SECONDS, lambda _, monitors: monitors.response_seconds),
)
_FIGURES_OF_CONTROLLERS: tuple[tuple[str, str, Figure], ...] = (
    ("ControllerDiskFreeBytes", BYTES, lambda report, monitors: report.disk_free if report else monitors.disk_bytes),
    ("ControllerMemoryFreeBytes", BYTES, lambda report, monitors: report.memory_soon if report else monitors.memory_bytes),
    ("ControllerCpuPercent", PERCENT, lambda report, _: report.cpu_percent if report else None),
    ("ControllerSentBytesPerSecond", NONE, lambda report, _: (report.sent or 0.0) / max(1.0, report.seconds) if report else None),
)


def health_of_controller(view: ControllerView, readings: Readings, dimensions: Dimensions) -> Iterator[Datum]:
    """Describe the controller's own machine, as it tells itself or else as Jenkins does: response time, disk, memory, builds on it."""
    yield one("ControllerResponseSeconds", view.response_seconds, SECONDS, dimensions)
    report, own = readings.of_controller(view.name)
    for name, unit, figure in _FIGURES_OF_CONTROLLERS:
        if (value := figure(report, own)) is not None:
            yield one(name, value, unit, dimensions)
    if view.complete:
        busy = sum(len(node.builds) for node in view.nodes if not node.agent)
        yield one("ControllerExecutorsBusy", busy, COUNT, dimensions)


def worst_of(name: str, values: list[float]) -> float:
    """Return the lowest of free space, and the highest of anything else."""
    return min(values) if name.endswith(("FreeBytes", "AvailableBytes")) else max(values)
