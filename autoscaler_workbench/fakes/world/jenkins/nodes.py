"""Nodes of the simulated Jenkins: labels, executors, offline marks, and what the node monitors tell."""

import hashlib
from dataclasses import dataclass, field

from autoscaler.domain.labels import LabelExpression
from autoscaler_workbench.fakes.world.jenkins.builds import Build

# Each monitor is a thread of its own. All begin 5 s after a node came online (hudson.node_monitors.NodeMonitorUpdater), the
# architecture's sooner where somebody reads it (recording c02_computer_online_idle_one); then they look every hour.
_FIRST_TOLD_SECONDS = {"ArchitectureMonitor": 1.0, "ResponseTimeMonitor": 5.2, "ClockMonitor": 5.2, "SwapSpaceMonitor": 6.0}
_LAST_TOLD_SECONDS = 7.0


@dataclass(slots=True, kw_only=True)
class Monitors:
    """The readings of one machine. ``since_at``: when it first connected in this life of its controller; None: it never did."""

    disk_bytes: int = 60_000_000_000
    memory_bytes: int = 12_000_000_000
    response_ms: int = 40
    architecture: str = "Linux (amd64)"
    since_at: float | None = None

    def tells(self, monitor: str, now: float) -> bool:
        """Tell whether a monitor has measured yet; a reading survives a lost connection."""
        return self.since_at is not None and now >= self.since_at + _FIRST_TOLD_SECONDS.get(monitor, _LAST_TOLD_SECONDS)


@dataclass(eq=False, slots=True, kw_only=True)
class Node:
    """One node; ``builds`` by executor."""

    name: str
    labels: tuple[str, ...]
    executors: int
    exclusive: bool
    description: str
    remote_dir: str
    connected: bool = False
    temporarily_offline: bool = False
    cause: str | None = None  # class of the offline cause
    reason: str = ""
    cause_at: float = 0.0  # since when
    user: str = ""
    idle_since: float = 0.0  # when it connected, or its last build left it
    builds: dict[int, Build] = field(default_factory=dict)
    handed: list[Build] = field(default_factory=list)  # to executors that have not begun
    monitors: Monitors = field(default_factory=Monitors)
    survives_reload: bool = False  # it carries the property that configuration as code leaves alone
    fails_builds: bool = False  # something is wrong with the machine: whatever it builds fails
    most_executors: int = 0  # that it ever had
    subtasks: dict[int, Build] = field(default_factory=dict)  # further executors of heavy builds
    away_since: float | None = None  # its agent lost its connection, and has not come back
    is_deleted: bool = False  # this is the computer that is left of it

    @property
    def offline(self) -> bool:
        """It takes no builds."""
        return self.temporarily_offline or not self.connected

    def __post_init__(self) -> None:
        """Begin with the executors that it has."""
        self.most_executors = self.executors

    @property
    def numbers(self) -> list[int]:
        """The numbers of its executors. Those too many stay while they are busy, and count (hudson.model.Computer.setNumExecutors)."""
        if self.executors >= self.most_executors:
            return list(range(self.executors))
        taken = {*self.builds, *self.subtasks}
        busy = [number for number in sorted(taken) if number < self.most_executors]
        idle = [number for number in range(self.most_executors) if number not in taken]
        return sorted([*busy, *idle[: max(0, self.executors - len(busy))]])

    @property
    def room(self) -> int:
        """Count the executors that are free, whatever its state."""
        return self.executors - len(self.builds) - len(self.handed) - len(self.subtasks)

    def clear_mark(self) -> None:
        """Drop the mark that sets it offline."""
        self.temporarily_offline, self.reason, self.cause = False, "", None

    def serves(self, expression: LabelExpression | None) -> bool:
        """Tell whether its labels and mode match, whatever its state."""
        return not self.exclusive if expression is None else expression.matches(self.all_labels)

    @property
    def all_labels(self) -> frozenset[str]:
        """Its labels, its own name among them; none of a deleted node (Computer.getAssignedLabels)."""
        return frozenset(() if self.is_deleted else (self.name, *self.labels))


def secret_of(node: str) -> str:
    """An agent's secret: a function of the node's name alone, as in Jenkins."""
    return hashlib.sha256(f"inbound {node}".encode()).hexdigest()
