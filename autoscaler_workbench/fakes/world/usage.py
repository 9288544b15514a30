"""What builds use of the machines in the simulated world, and what the agents' service tells of it: sampled each 15 s, as ``agent/`` does.

Builds grow to their peak within half their time. What they use outside their own processes, as in containers, only the machine shows.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from autoscaler.domain.facts.telemetry import MOST_BUILDS, BuildUse, GpuUse, Telemetry
from autoscaler_workbench.fakes.world.jenkins.builds import Build
from autoscaler_workbench.fakes.world.jenkins.controller import Controller
from autoscaler_workbench.fakes.world.timeline import Timeline

GIB = 2.0**30
SAMPLE_SECONDS = 15.0
_WINDOW_SECONDS = 300.0
# As in agent/linux: what is gone is told of twice, a minute of decline is taken to go on for three, and that is told at once where it
# leaves less than this share of the memory.
_TOLD_SECONDS, _DECLINE_SECONDS, _AHEAD_SECONDS, _SHORT = 660.0, 60.0, 180.0, 0.15
_WORSE, _PAUSE_SECONDS = 0.8, 45.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What each build of a job uses at its peak. ``hidden``: bytes that no process of its own has, as Docker's."""

    memory: float = GIB / 2
    hidden: float = 0.0
    cores: float = 1.0
    gpu_memory: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """One machine. ``idle``: what it uses without builds; ``cache``: what it spends on files, and gives back."""

    memory: float = 16 * GIB
    idle: float = GIB
    cache: float = 14 * GIB
    cores: float = 4.0
    disk: float = 100 * GIB
    gpu_memory: float = 0.0  # of its card; 0: it has none


@dataclass(slots=True)
class Usage:
    """The machines of one world, as far as they tell. ``needs``: by job; ``leaks``: by machine, since when and bytes a second."""

    timeline: Timeline
    controllers: Mapping[str, Controller]
    needs: dict[str, Need] = field(default_factory=dict)
    size: Size = field(default_factory=Size)
    leaks: dict[str, tuple[float, float]] = field(default_factory=dict)
    disk_used: dict[str, float] = field(default_factory=dict)  # by machine
    silent: set[str] = field(default_factory=set)  # machines of an older version, which tell nothing
    _urgent: dict[str, tuple[float, float]] = field(default_factory=dict)  # by machine: when, and the share that was told last

    def available(self, machine: str, connected: Collection[str], at: float) -> float:
        """Return the memory that is available on a machine; less than nothing is its end."""
        used = sum(self._memory(build, at) + self.needs.get(build.job, Need()).hidden for build in self._running(connected, at))
        since, rate = self.leaks.get(machine, (at, 0.0))
        return self.size.memory - self.size.idle - used - max(0.0, at - since) * rate

    def is_urgent(self, machine: str, connected: Collection[str]) -> bool:
        """Tell whether a sample is worth a question of its own: memory is short, much worse, or short no more."""
        now, share = self.timeline.now, self._soon(machine, connected) / self.size.memory
        at, told = self._urgent.get(machine, (-_PAUSE_SECONDS, 1.0))
        short, was_short = share < _SHORT, told < _SHORT
        if (short == was_short and not (short and share < _WORSE * told)) or now - at < _PAUSE_SECONDS:
            return False
        self._urgent[machine] = now, share
        return True

    def report(self, machine: str, connected: Collection[str]) -> Telemetry | None:
        """Return what the service of a machine says now."""
        if machine in self.silent:
            return None
        now, size = self.timeline.now, self.size
        samples = [self.available(machine, connected, now - ago) for ago in _every(_WINDOW_SECONDS)]
        soon, free = self._soon(machine, connected), size.disk - self.disk_used.get(machine, 20 * GIB)
        builds = sorted(self._seen(connected, now), key=lambda build: -(build.ended_at or now))[:MOST_BUILDS]
        return Telemetry(
            seconds=_WINDOW_SECONDS,
            cores=size.cores,
            memory_total=size.memory,
            memory_available=max(0.0, samples[0]),
            memory_least=max(0.0, min(samples)),
            memory_ahead=max(0.0, soon) if soon < samples[0] else None,
            cpu_mean=sum(self._need(build).cores for build in self._running(connected, now)),
            root_free=free,
            root_total=size.disk,
            work_free=free,
            work_total=size.disk,
            gpus=self._card(connected, now),
            builds=tuple(self._use(build, connected, now) for build in builds),
        )

    def _soon(self, machine: str, connected: Collection[str]) -> float:
        """Project a minute of steady decline."""
        values = [self.available(machine, connected, self.timeline.now - ago) for ago in _every(_DECLINE_SECONDS)]
        falls = all(later < former for later, former in pairwise(values))
        return values[0] - (values[-1] - values[0]) / _DECLINE_SECONDS * _AHEAD_SECONDS if falls else values[0]

    def _card(self, connected: Collection[str], now: float) -> tuple[GpuUse, ...]:
        if not self.size.gpu_memory:
            return ()
        used = sum(self._need(build).gpu_memory for build in self._running(connected, now))
        return (GpuUse(memory=self.size.gpu_memory, used=used, use=50.0 if used else 0.0),)

    def _use(self, build: Build, connected: Collection[str], now: float) -> BuildUse:
        began, ended = build.started_at or now, build.ended_at or now
        alone = all(other is build or not _overlap(build, other, now) for other in self._seen(connected, now, since=began))
        need = self._need(build)
        return BuildUse(
            node=build.node or "",
            executor=str(build.executor),
            run=build.run_path.rstrip("/"),
            seconds=ended - began + SAMPLE_SECONDS,
            memory=self._memory(build, ended) + (need.hidden if alone else 0.0),
            cpu=need.cores * (ended - began),
            gpu_memory=need.gpu_memory,
            gpu=need.gpu_memory > 0,
            alone=alone,
        )

    def _need(self, build: Build) -> Need:
        return self.needs.get(build.job, Need())

    def _memory(self, build: Build, at: float) -> float:
        """Return what its own processes have by then."""
        done = (at - (build.started_at or at)) / max(1.0, build.seconds)
        return self._need(build).memory * min(1.0, 0.2 + 1.6 * done)

    def _running(self, connected: Collection[str], at: float) -> list[Build]:
        return [build for build in self._seen(connected, at, since=at) if (build.started_at or 0.0) <= at]

    def _seen(self, connected: Collection[str], now: float, since: float | None = None) -> Iterable[Build]:
        """List the builds that ran on the nodes of a machine since then, or long enough for a sample until what is told of now."""
        since = now - _TOLD_SECONDS if since is None else since
        for key in connected:
            controller, node, _ = key.split("/")
            for build in self.controllers[controller].builds:
                if build.node == node and build.started_at is not None and (build.ended_at is None or build.ended_at > since):
                    yield build


def _every(seconds: float) -> list[float]:
    """List how long ago samples were taken, the latest first."""
    return [SAMPLE_SECONDS * number for number in range(int(seconds / SAMPLE_SECONDS) + 1)]


def _overlap(one: Build, other: Build, now: float) -> bool:
    return (other.started_at or now) < (one.ended_at or now) and (one.started_at or now) < (other.ended_at or now)
