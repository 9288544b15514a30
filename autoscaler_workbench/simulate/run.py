"""One run: a trace replayed in a world, by whichever way the functions are run, recorded as it goes."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from time import perf_counter
from typing import Any

from autoscaler.domain.facts.fleet import Fleet
from autoscaler_workbench.fakes.world.faults import Faults, failing
from autoscaler_workbench.fakes.world.physics import CALM, Physics
from autoscaler_workbench.fakes.world.world import World, build_world
from autoscaler_workbench.simulate.drive import MINUTE, Functions, InProcess, Progress, drive
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
    began: float = field(default_factory=perf_counter)

    def drive(self, functions: Functions, *, every: float = MINUTE) -> Iterator[Progress]:
        """Run it, yielding after each tick."""
        for progress in drive(self.world, self.replay, functions, hours=self.hours, every=every):
            self.recording.note(progress)
            yield progress

    def result(self, progress: Progress) -> dict[str, Any]:
        """Give its measures as one JSON object, counted in the world itself."""
        return {
            "trace": self.trace.name,
            "pools": len(self.world.fleet.pools),
            "passes": progress.passes,
            **asdict(measure(self.world, self.replay.builds)),
            "jobs": self.replay.rows,  # also those whose turn never came
            "errors": progress.errors,
            "seed": self.seed,
            "took_s": round(perf_counter() - self.began, 1),
        }


def prepare(trace: Trace, fleet: Fleet, *, hours: float, seed: int, physics: Physics = CALM) -> Run:
    """Make a world for a trace. Each row falls to the first controller: a trace is the queue of one Jenkins."""
    world = build_world(fleet, start_at=trace.start_at, seed=seed, physics=physics)
    replay = Replay(trace, world.controllers[fleet.controllers[0]])
    return Run(trace, world, replay, hours, seed, Recording(world))


def in_memory(run: Run, *, every: float = MINUTE) -> Iterator[Progress]:
    """Run it in memory: the production passes on the world, without handlers, sockets and a local AWS."""
    faults = Faults(dice=failing(run.world.physics.failing_calls, run.seed))
    return run.drive(InProcess(run.world, run.world.fleet, faults, look_every_seconds=every), every=every)
