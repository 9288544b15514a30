"""A finished run over time: builds waiting, builds running, executors paid for."""

from bisect import bisect_right
from collections.abc import Iterable

from workbench.fakes.world.jenkins.builds import Build
from workbench.fakes.world.world import World
from workbench.simulate.result import pool_of

_POINTS = 240
Point = tuple[float, int, int, int]  # epoch seconds, builds waiting, builds running, executors paid for


def timeline(world: World, builds: Iterable[Build], begin: float) -> list[Point]:
    """The run in equal steps, from its beginning to now."""
    builds, end = list(builds), world.timeline.now
    waiting = _Steps((build.buildable_at, build.started_at if build.started_at is not None else build.ended_at, 1) for build in builds)
    running = _Steps((build.started_at, build.ended_at, 1) for build in builds if build.started_at is not None)
    paid = _Steps((i.launched_at, i.ended_at, pool_of(world, i).executors) for i in world.ec2.instances.values())
    instants = [begin + (end - begin) * step / _POINTS for step in range(_POINTS + 1)]
    return [(round(at, 1), waiting.at(at), running.at(at), paid.at(at)) for at in instants]


class _Steps:
    """The sum of the weights of all spans that cover an instant."""

    def __init__(self, spans: Iterable[tuple[float, float | None, int]]) -> None:
        changes = [change for begin, end, weight in spans for change in ((begin, weight), *(((end, -weight),) if end is not None else ()))]
        self._times: list[float] = []
        self._sums: list[int] = []
        total = 0
        for at, weight in sorted(changes):
            total += weight
            self._times.append(at)
            self._sums.append(total)

    def at(self, when: float) -> int:
        place = bisect_right(self._times, when)
        return self._sums[place - 1] if place else 0
