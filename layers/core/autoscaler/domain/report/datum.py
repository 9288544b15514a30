"""One metric at one instant; which are sent; and what passes leave for the look that measures."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from autoscaler.domain.grouping import grouped

# One metric at one instant.


COUNT, SECONDS, PERCENT, BYTES, NONE = "Count", "Seconds", "Percent", "Bytes", "None"
Dimensions = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Datum:
    """One value, or the values of a distribution. ``unit``: CloudWatch's word."""

    name: str
    values: tuple[float, ...]
    unit: str
    dimensions: Dimensions


def one(name: str, value: float, unit: str, dimensions: Dimensions) -> Datum:
    """A metric with one value."""
    return Datum(name=name, values=(float(value),), unit=unit, dimensions=dimensions)


# What is sent as a metric at `MetricsLevel: essential`, and what is logged in place of the rest, one line a place and minute.


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


def essential(data: Iterable[Datum]) -> list[Datum]:
    """Pick what is sent: the fleet's own values of few names."""
    return [datum for datum in data if datum.name in ESSENTIAL and len(datum.dimensions) == 1]


def lines_of(data: Iterable[Datum]) -> Iterator[tuple[str, dict[str, str | float]]]:
    """Return an event and its facts for each pool and controller that has any, and for the fleet: the metrics' names are the keys.

    Of several values the largest is told, of free space the least.
    """
    told = (datum for datum in data if tuple(name for name, _ in datum.dimensions[1:]) in _EVENTS and any(datum.values))
    worst = ((datum, worst_of(datum.name, datum.values)) for datum in told)
    figures = ((datum.dimensions, (datum.name, int(value) if value == int(value) else round(value, 3))) for datum, value in worst)
    for dimensions, facts in grouped(figures).items():
        names = tuple(name for name, _ in dimensions[1:])
        zeros = {} if names == ("Controller",) else dict.fromkeys(_ALWAYS, 0)
        yield _EVENTS[names], {**{name.lower(): value for name, value in dimensions[1:]}, **zeros, **dict(facts)}


def worst_of(name: str, values: Sequence[float]) -> float:
    """Return the lowest of free space, and the highest of anything else."""
    return min(values) if name.endswith(("FreeBytes", "AvailableBytes")) else max(values)


# What passes leave for the look that measures: when they were completed, and what they counted in the last hour.


# A pass a minute; the schedule is not exact to the second, and one pass is longer than another.
MISSED_SECONDS = 110.0
_COMPLETED_SECONDS, _COUNTED_SECONDS = 900.0, 3600.0
_APART_SECONDS = 45.0  # of passes that come more often, one in so long is noted
_PLACES = 3
# Of these so many seconds are summed up; of the others, the minutes of so many seconds in which they were counted.
_SUMMED = {"BootFailures": 3600.0, "StartsFailed": 3600.0, "BuildsLeft": 3600.0, "Quarantines": 300.0, "LeaseHeld": 900.0}
_MINUTES = {"SweepsStopped": 180.0, "Ec2Disagrees": 300.0}
SCALING = ("scale_up", "scale_down")


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """So many of something at one instant. ``places``: where, such as "pool gpu of main"; of many the first few."""

    at: float
    name: str
    count: int
    places: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PassNotes:
    """The notes of one function, oldest first."""

    version: int = 0
    completed: tuple[float, ...] = ()
    counts: tuple[Counted, ...] = ()


def noted(
    notes: PassNotes, at: float, counts: Mapping[str, int], places: Mapping[str, Sequence[str]], *, completed: bool
) -> PassNotes | None:
    """Return the notes after a pass, without what is too old to matter; None where there is nothing new to note."""
    parts = tuple(
        Counted(at=at, name=name, count=count, places=tuple(places.get(name, ()))[:_PLACES])
        for name, count in counts.items()
        if count and (name in _SUMMED or name in _MINUTES)
    )
    is_new = completed and (not notes.completed or at - notes.completed[-1] >= _APART_SECONDS)
    if not parts and not is_new:
        return None
    kept = tuple(one for one in notes.counts if at - one.at < _COUNTED_SECONDS)
    times = tuple(time for time in notes.completed if at - time < _COMPLETED_SECONDS)
    return replace(notes, completed=(*times, at) if is_new else times, counts=(*kept, *parts))


def data_of_notes(fleet: str, notes: Mapping[str, PassNotes], now: float) -> Iterator[Datum]:
    """Describe what the passes counted of late, and how regularly they were completed."""
    dimensions = (("Fleet", fleet),)
    for name, seconds in (_SUMMED | _MINUTES).items():
        of_late = [counted for counted in _all_counts(notes) if counted.name == name and now - counted.at < seconds]
        minutes = {int(counted.at // 60) for counted in of_late}
        yield one(name, sum(counted.count for counted in of_late) if name in _SUMMED else len(minutes), COUNT, dimensions)
    for function in SCALING:
        times = [time for time in notes.get(function, PassNotes()).completed if now - time < _COMPLETED_SECONDS]
        of_function = (*dimensions, ("Function", function))
        yield one("SecondsSincePass", now - times[-1] if times else _COMPLETED_SECONDS, SECONDS, of_function)
        yield one("PassesMissed", sum(b - a > MISSED_SECONDS for a, b in pairwise(times)), COUNT, of_function)


def places_of_notes(notes: Mapping[str, PassNotes], now: float) -> dict[str, list[str]]:
    """Where each thing was counted that `data_of_notes` counts, newest first."""
    seconds, newest = _SUMMED | _MINUTES, sorted(_all_counts(notes), key=lambda counted: -counted.at)
    places = grouped((count.name, place) for count in newest if now - count.at < seconds.get(count.name, 0.0) for place in count.places)
    return {name: list(dict.fromkeys(of_name)) for name, of_name in places.items()}


def _all_counts(notes: Mapping[str, PassNotes]) -> list[Counted]:
    return [counted for of_function in notes.values() for counted in of_function.counts]
