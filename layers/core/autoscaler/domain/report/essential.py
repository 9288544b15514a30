"""What is sent as a metric at `MetricsLevel: essential`, and what is logged in place of the rest, one line a place and minute."""

from collections.abc import Iterable, Iterator

from autoscaler.domain.report.datum import Datum

# Each costs 30 cents a month: those that alarms watch, those that other tools of a fleet ask for, and what a fleet is there for.
ESSENTIAL = frozenset(
    {
        *("Heartbeat", "Problems", "QueueWait", "JobWaitSeconds", "UsdMonthUsedPercent"),
        *("QueueStarved", "AgentsOnline", "UsdPerHour"),
        *("QueueLength", "ExecutorsFree", "ExecutorsBusy", "RemainingSeconds", "BuildsSucceeded", "BuildsFailed"),
    }
)
_EVENTS = {(): "fleet_measured", ("Controller",): "controller_measured", ("Controller", "Pool"): "pool_measured"}
# Of a pool and of the fleet these are told though they are 0: who asks for the latest value must not find an older one.
_ALWAYS = ("QueueStarved", "QueueWait", "AgentsOnline", "AgentsBooting", "ExecutorsBusy", "ExecutorsTotal")
_LEAST = ("FreeBytes", "AvailableBytes")


def essential(data: Iterable[Datum]) -> list[Datum]:
    """Pick what is sent: the fleet's own values of few names."""
    return [datum for datum in data if datum.name in ESSENTIAL and len(datum.dimensions) == 1]


def lines_of(data: Iterable[Datum]) -> Iterator[tuple[str, dict[str, str | float]]]:
    """Return an event and its facts for each pool and controller that has any, and for the fleet: the metrics' names are the keys."""
    lines: dict[tuple[tuple[str, str], ...], dict[str, str | float]] = {}
    for datum in data:
        if tuple(name for name, _ in datum.dimensions[1:]) in _EVENTS and any(datum.values):
            lines.setdefault(datum.dimensions, {})[datum.name] = _told(datum)
    for dimensions, facts in lines.items():
        names = tuple(name for name, _ in dimensions[1:])
        zeros = {} if names == ("Controller",) else dict.fromkeys(_ALWAYS, 0)
        yield _EVENTS[names], {**{name.lower(): value for name, value in dimensions[1:]}, **zeros, **facts}


def _told(datum: Datum) -> float:
    """One number: of several values the largest, of free space the least."""
    worst = min(datum.values) if datum.name.endswith(_LEAST) else max(datum.values)
    return int(worst) if worst == int(worst) else round(worst, 3)
