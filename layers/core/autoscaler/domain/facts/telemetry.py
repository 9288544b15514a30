"""What the agent of a machine reports: memory, disks, processors, graphics cards, and what its builds use. Data, no decisions."""

from collections.abc import Mapping
from dataclasses import dataclass

# An agent reports every five minutes. A figure that is older than two reports is no figure at all, and not a low one.
FRESH_SECONDS = 660.0
# A machine of which less than this share of its memory or of a disk is left is short of it.
SHORT = 0.1
# An agent sends no more builds and graphics cards than these.
MOST_BUILDS, MOST_GPUS = 32, 16
# What a controller's own machine is called where others have ids.
CONTROLLER = "controller-"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuUse:
    """One graphics card since the last report. ``used``: the most bytes of its memory; ``use``: percent busy in the mean."""

    memory: float
    used: float
    use: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildUse:
    """What one build has used on a machine since it began there. ``memory``, ``gpu_memory``: the most bytes; ``cpu``: seconds.

    ``alone``: no other build ran there at any time, so that the figures are the machine's, and exact. Else they are those of its own
    processes.
    """

    node: str
    executor: str
    run: str
    seconds: float
    memory: float
    cpu: float
    gpu_memory: float = 0.0
    gpu: bool = False
    alone: bool = False

    @property
    def key(self) -> str:
        """What a look at the executors calls it."""
        return f"{self.node}/{self.executor}/{self.run}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Telemetry:
    """One report, of so many ``seconds``. Sizes in bytes; None: not told. ``memory_least``: that was available; ``swap_used``: the most.

    ``memory_ahead``: what will be available in three minutes, where it falls steadily.
    """

    told_at: float = 0.0
    seconds: float
    cores: float
    memory_total: float
    memory_available: float
    memory_least: float | None = None
    memory_ahead: float | None = None
    swap_used: float | None = None
    cpu_mean: float | None = None
    sent: float | None = None
    root_free: float | None = None
    root_total: float | None = None
    work_free: float | None = None
    work_total: float | None = None
    gpus: tuple[GpuUse, ...] = ()
    builds: tuple[BuildUse, ...] = ()

    def is_fresh(self, now: float) -> bool:
        """Tell whether it still says something of now."""
        return now - self.told_at <= FRESH_SECONDS

    @property
    def memory_soon(self) -> float:
        """The memory that is available by the time an alarm has rung."""
        return self.memory_available if self.memory_ahead is None else min(self.memory_available, self.memory_ahead)

    @property
    def cpu_percent(self) -> float | None:
        """How busy its processors were."""
        return None if self.cpu_mean is None else min(100.0, 100.0 * self.cpu_mean / self.cores)

    @property
    def disk_free(self) -> float | None:
        """The least free space of any of its disks."""
        return min((free for free in (self.root_free, self.work_free) if free is not None), default=None)

    @property
    def is_short_of_disk(self) -> bool:
        """Whether less than a tenth of any of its disks is free."""
        disks = ((self.root_free, self.root_total), (self.work_free, self.work_total))
        return any(free is not None and total and free < SHORT * total for free, total in disks)

    @property
    def gpu_percent(self) -> float | None:
        """How busy its cards were, all together; None where it has none."""
        return sum(gpu.use for gpu in self.gpus) / len(self.gpus) if self.gpus else None

    @property
    def gpu_memory_free(self) -> float | None:
        """The least free memory of any of its cards; None where it has none."""
        return min((max(0.0, gpu.memory - gpu.used) for gpu in self.gpus), default=None)


Reports = Mapping[str, Telemetry]  # the last ones, by machine


# What a machine can be: a report beyond that is no report. Data, and the one check of it, at the border and where it was stored.


_YEAR = 366 * 86_400.0
_PETABYTE = 2.0**50
_DISKS = 2.0**60
_MEMORY, _MEMORY_OF_A_MACHINE = (0.0, _PETABYTE), (2.0**24, _PETABYTE)
_CORES = 10_000.0

BOUNDS: Mapping[str, tuple[float, float]] = {
    "told_at": (0.0, 32_503_680_000.0),  # the year 3000
    "seconds": (0.0, _YEAR),
    "cores": (0.01, _CORES),
    "memory_total": _MEMORY_OF_A_MACHINE,
    "memory_available": _MEMORY,
    "memory_least": _MEMORY,
    "memory_ahead": _MEMORY,
    "swap_used": _MEMORY,
    "cpu_mean": (0.0, _CORES),
    "sent": (0.0, _DISKS),
    "root_free": (0.0, _DISKS),
    "root_total": (0.0, _DISKS),
    "work_free": (0.0, _DISKS),
    "work_total": (0.0, _DISKS),
}
_OF_A_CARD = {"memory": _MEMORY, "used": _MEMORY, "use": (0.0, 100.0)}
_OF_A_BUILD = {"seconds": (0.0, _YEAR), "memory": _MEMORY, "cpu": (0.0, _YEAR * _CORES), "gpu_memory": _MEMORY}


def out_of_bounds(report: Telemetry) -> str:
    """Say which figure no machine can have, and never what was reported; "" if there is none."""
    parts: list[tuple[object, Mapping[str, tuple[float, float]], str]] = [(report, BOUNDS, "")]
    parts += [(card, _OF_A_CARD, f"gpus.{number}.") for number, card in enumerate(report.gpus)]
    parts += [(build, _OF_A_BUILD, f"builds.{number}.") for number, build in enumerate(report.builds)]
    for figures, bounds, place in parts:
        for name, (least, most) in bounds.items():
            value = getattr(figures, name)
            if value is not None and not least <= value <= most:  # nor a value that is no number
                return f"{place}{name}: must be from {least:g} to {most:g}"
    return ""


# Devices of a machine, as its agent tells when it asks: graphics cards that `gpu-lease` hands out, one command at a time.


# An agent that has devices asks again after this long, 40 times an hour: what it says of them is soon out of date.
DEVICES_POLL_SECONDS = 90
# After so long nothing is known of a device any more: its agent has missed three questions.
DEVICES_FRESH_SECONDS = 300.0
FREE = "free"


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One device. ``state``: free, held, or in use without a lease; ``user``: whose process holds it, where one does."""

    id: str
    kind: str
    state: str
    user: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    """All devices of a machine when it last said so. ``waiting``: how many wait for one there."""

    told_at: float
    devices: tuple[Device, ...]
    waiting: int = 0

    @property
    def free(self) -> int:
        """How many nobody holds or uses."""
        return sum(device.state == FREE for device in self.devices)

    def is_fresh(self, now: float) -> bool:
        """Tell whether what was said still says something."""
        return now - self.told_at <= DEVICES_FRESH_SECONDS
