"""A finished run over time: builds waiting, builds running, executors paid for."""

from collections.abc import Iterable

from autoscaler_workbench.fakes.world.jenkins.builds import Build
from autoscaler_workbench.fakes.world.world import World
from autoscaler_workbench.simulate.result import StepCurve, pool_of

_POINTS = 240
Point = tuple[float, float, float, float]  # epoch seconds, builds waiting, builds running, executors paid for


def timeline(world: World, builds: Iterable[Build], begin: float) -> list[Point]:
    """The run in equal steps, from its beginning to now."""
    builds, end = list(builds), world.timeline.now
    started = [build for build in builds if build.started_at is not None]
    waiting = StepCurve.of((b.buildable_at, b.started_at if b.started_at is not None else b.ended_at, 1) for b in builds)
    running = StepCurve.of((build.started_at or 0.0, build.ended_at, 1) for build in started)
    paid = StepCurve.of(
        (spell.began_at, spell.ended_at, pool_of(world, i).executors) for i in world.ec2.instances.values() for spell in i.spells
    )
    instants = [begin + (end - begin) * step / _POINTS for step in range(_POINTS + 1)]
    return [(round(at, 1), waiting.at(at), running.at(at), paid.at(at)) for at in instants]
