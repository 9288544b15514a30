"""Time as a picture: dollars an hour as steps under their limit, and bars for the periods in which alarms rang."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from autoscaler.domain.wording import dollars, duration
from autoscaler_workbench.ui.source import Past
from autoscaler_workbench.ui.trouble import day_time

# The picture's own units; the page stretches them to what room there is.
WIDE, HIGH = 1000.0, 100.0
_LIMIT_DRAWN_UP_TO = 4.0  # a limit that is further above what was spent would press all else flat
_HOURS_BETWEEN_TICKS = (0.25, 0.5, 1, 2, 3, 6, 12, 24, 48, 168, 336)
_MOST_TICKS = 5  # on a phone six times of the day touch each other at the ends
_HEADROOM = 1.2  # above the highest line, for the words on it
_EDGE = 6.0  # nearer to an end than this, per cent, a time stands beside its place: half of it would be cut off
_LEAST_PERCENT = 0.4  # so wide is a period of a minute in a day


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """Dollars an hour over time.

    ``lines``, ``areas``: SVG paths, one for each stretch that was measured. ``limit_y``: None where the limit is far above.
    """

    lines: tuple[str, ...]
    areas: tuple[str, ...]
    limit_y: float | None
    highest: str
    most: str
    highest_y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One period, in per cent of the picture's width."""

    left: float
    width: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rang:
    """One alarm that rang, and when."""

    alarm: str
    says: str
    rings: bool
    times: int
    total: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A time on the axis, in per cent of its length. ``back``: how much of its text stands to the left of it, in per cent."""

    left: float
    back: float
    text: str


def spend_of(past: Past, limit: float) -> Spend | None:
    """Draw what was spent an hour; None where nobody measured it."""
    if not past.spend:
        return None
    most_at, most = max(past.spend, key=lambda point: point[1])
    near = limit <= _LIMIT_DRAWN_UP_TO * most
    top = _HEADROOM * max(most, limit if near else 0.0) or 1.0
    stretches = [list(_stretch(past, part, top)) for part in _without_gaps(past)]
    return Spend(
        lines=tuple(_path(points) for points in stretches),
        areas=tuple(f"{_path(points)}V{HIGH:g}H{points[0][0]:g}Z" for points in stretches),
        limit_y=round(HIGH * (1 - limit / top), 1) if near else None,
        highest=f"at most {dollars(most)}, at {day_time(most_at, past.ends_at)}" if most else "nothing",
        most=dollars(most),
        highest_y=round(HIGH * (1 - most / top), 1),
    )


def _without_gaps(past: Past) -> Iterator[list[tuple[float, float]]]:
    """Stretches in which no measurement is missing."""
    part: list[tuple[float, float]] = []
    for at, usd in sorted(past.spend):
        if part and at - part[-1][0] > 1.5 * past.every_seconds:
            yield part
            part = []
        part.append((at, usd))
    yield part


def _stretch(past: Past, part: Sequence[tuple[float, float]], top: float) -> Iterator[tuple[float, float]]:
    """The corners of the steps; the last value holds until the next would have come."""
    for (at, usd), until in zip(part, [*(at for at, _ in part[1:]), part[-1][0] + past.every_seconds], strict=True):
        y = HIGH * (1 - usd / top)
        yield _x(past, at), y
        yield _x(past, until), y


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _x(past: Past, at: float) -> float:
    return WIDE * percent_of(past, at) / 100


def percent_of(past: Past, at: float) -> float:
    """Where an instant lies, from 0 to 100."""
    length = max(past.ends_at - past.begins_at, 1.0)
    return min(100.0, max(0.0, 100.0 * (at - past.begins_at) / length))


def rang_of(past: Past) -> list[Rang]:
    """The alarms that rang, those that ring now first."""
    rang = [_rang(past, alarm) for alarm in past.alarms if alarm["rang"]]
    return sorted((one for one in rang if one.bars), key=lambda one: (not one.rings, one.alarm))


def _rang(past: Past, alarm: dict[str, Any]) -> Rang:
    spans = [(begin, past.ends_at if end is None else end) for begin, end in alarm["rang"]]
    seen = [(begin, end) for begin, end in spans if end >= past.begins_at and begin <= past.ends_at]
    return Rang(
        alarm=alarm["alarm"],
        says=alarm["says"],
        rings=alarm["state"] == "ALARM",
        times=len(seen),
        total=duration(sum(end - max(begin, past.begins_at) for begin, end in seen)),
        bars=tuple(_bar(past, begin, end) for begin, end in seen),
    )


def _bar(past: Past, begin: float, end: float) -> Bar:
    width = max(_LEAST_PERCENT, percent_of(past, end) - percent_of(past, begin))
    left = min(percent_of(past, begin), 100.0 - width)
    return Bar(left=left, width=width, text=span_of(past, begin, end))


def ticks_of(past: Past) -> list[Tick]:
    """Whole hours of the day in UTC, so many as are legible on a phone."""
    hours = (past.ends_at - past.begins_at) / 3600
    every = next((step for step in _HOURS_BETWEEN_TICKS if hours / step <= _MOST_TICKS), _HOURS_BETWEEN_TICKS[-1]) * 3600
    first = -(-past.begins_at // every) * every
    places = ((percent_of(past, at), at) for at in _steps(first, past.ends_at, every))
    return [Tick(left=left, back=0 if left < _EDGE else 100 if left > 100 - _EDGE else 50, text=_tick(at, every)) for left, at in places]


def _tick(at: float, every: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):{'%H:%M' if every < 86_400 else '%d %b'}}"


def _steps(first: float, last: float, every: float) -> Iterable[float]:
    return (first + number * every for number in range(int((last - first) // every) + 1))


def span_of(past: Past, begin: float, end: float) -> str:
    """Say from when to when, in UTC."""
    return f"{day_time(begin, past.ends_at)} to {day_time(end, past.ends_at)}"
