"""What Jenkins' node monitors measure of a machine, and when they tell it for the first time."""

from dataclasses import dataclass

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
    since_at: float | None = None

    def tells(self, monitor: str, now: float) -> bool:
        """Tell whether a monitor has looked; what it saw stays when the connection is lost."""
        return self.since_at is not None and now >= self.since_at + _FIRST_TOLD_SECONDS.get(monitor, _LAST_TOLD_SECONDS)
