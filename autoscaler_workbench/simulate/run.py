"""One run: a trace replayed in a world, by whichever way the functions are run, recorded as it goes."""

from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, field
from time import perf_counter
from typing import Any

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.report.datum import Datum
from autoscaler.domain.report.told import Message
from autoscaler_workbench.fakes.world.faults import Faults, failing
from autoscaler_workbench.fakes.world.physics import CALM, Physics
from autoscaler_workbench.fakes.world.world import World, break_boots, build_world
from autoscaler_workbench.simulate.drive import MINUTE, Functions, InProcess, Progress, drive
from autoscaler_workbench.simulate.measured import InProcessMeasured
from autoscaler_workbench.simulate.measures import measure
from autoscaler_workbench.simulate.recording import Recording
from autoscaler_workbench.simulate.replay import Replay
from autoscaler_workbench.simulate.traces import Trace


@dataclass(slots=True)
class Run:
    """A run under way, and then its result. ``hours``: of the trace; the run goes on until the fleet has come to rest."""

    trace: Trace
    world: World
    replay: Replay
    hours: float
    seed: int
    recording: Recording
    over: bool = False
    began: float = field(default_factory=perf_counter)

    def drive(self, functions: Functions, *, every: float = MINUTE) -> Iterator[Progress]:
        """Run it, yielding after each tick."""
        for progress in drive(self.world, self.replay, functions, hours=self.hours, every=every):
            self.recording.note(progress)
            yield progress
        self.over = True

    def result_now(self) -> dict[str, Any]:
        """Measure it as it is, counted in the world itself."""
        due = self.replay.rows if self.over else len(self.replay.builds)  # in the end also those whose turn never came
        return asdict(measure(self.world, self.replay.builds, over=self.over)) | {"jobs": due}

    def result(self, progress: Progress) -> dict[str, Any]:
        """Give its measures as one JSON object, counted in the world itself."""
        return {
            "trace": self.trace.name,
            "pools": len(self.world.fleet.pools),
            "passes": progress.passes,
            **self.result_now(),
            "errors": progress.errors,
            "seed": self.seed,
            "took_s": round(perf_counter() - self.began, 1),
        }


def prepare(trace: Trace, fleet: Fleet, *, hours: float, seed: int, physics: Physics = CALM) -> Run:
    """Make a world for a trace. Each row falls to the first controller: a trace is the queue of one Jenkins."""
    world = build_world(fleet, start_at=trace.start_at, seed=seed, physics=physics)
    replay = Replay(trace, world.controllers[fleet.controllers[0]])
    return Run(trace, world, replay, hours, seed, Recording(world))


def in_memory(
    run: Run,
    *,
    every: float = MINUTE,
    broken: Collection[str] = frozenset(),
    published: list[tuple[float, Datum]] | None = None,
    messages: list[Message] | None = None,
) -> Iterator[Progress]:
    """Run it in memory: the production passes on the world, without handlers, sockets and a local AWS.

    ``broken``: pools whose agents never come up. ``published``: takes the metrics, which are measured only then. ``messages``: takes what
    people are told, with ``published`` alone.
    """
    faults = Faults(dice=failing(run.world.physics.failing_calls, run.seed))
    kind = InProcess if published is None else InProcessMeasured
    functions = kind(run.world, run.world.fleet, faults, look_every_seconds=every)
    if published is not None:
        functions.metrics.published = published
    if messages is not None:
        functions.notifier.sent = messages
    break_boots(run.world, broken)
    return run.drive(functions, every=every)
