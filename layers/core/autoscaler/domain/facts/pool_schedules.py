"""When the schedules of pools hold, and which numbers a pool has then.

A time of day is the first instant of it at which the clocks of the time zone show that time or a later one. So of a time that comes twice,
where clocks are put back, the first counts; and one that never comes, where they are put forward, is the moment at which they are.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta, tzinfo
from math import inf
from typing import Any

from autoscaler.domain.facts.fleet import Fleet, Pool, PoolSchedule

DAY_MINUTES = 1440
WEEK_SECONDS = 7 * 86_400.0
# What comes each week comes within this, also where clocks are put back.
_AHEAD_DAYS = 8
# What goes on for longer than a week never ends.
_FOR_EVER_SECONDS = 7.5 * 86_400.0
_NUMBERS = ("min_agents", "max_agents", "warm_executors", "warm_pool")


@dataclass(frozen=True, slots=True)
class Span:
    """Seconds since the epoch; the end is the first instant that does not belong to it."""

    begins_at: float
    ends_at: float

    def holds(self, at: float) -> bool:
        """Tell whether an instant belongs to it."""
        return self.begins_at <= at < self.ends_at


def fleet_at(fleet: Fleet, at: float) -> Fleet:
    """Return the fleet with the numbers that its pools have then."""
    scheduled = {pool.name: pool_at(pool, at) for pool in fleet.pools.values() if pool.schedules}
    return replace(fleet, pools={**fleet.pools, **scheduled}) if scheduled else fleet


def pool_at(pool: Pool, at: float) -> Pool:
    """Return the pool with the numbers that it has then; where two schedules hold, the one written later has the last word, key by key."""
    return _that_holds(pool, [tuple(_spans(schedule, at, 1)) for schedule in pool.schedules], at)


def pool_for_a_week(pool: Pool, at: float) -> list[tuple[float, Pool]]:
    """Return the pool with the numbers that it has from then on, and from each instant on at which they may change, up to a week later."""
    spans = [tuple(_spans(schedule, at, _AHEAD_DAYS)) for schedule in pool.schedules]
    edges = {edge for one in spans for span in one for edge in (span.begins_at, span.ends_at) if at < edge <= at + WEEK_SECONDS}
    return [(then, _that_holds(pool, spans, then)) for then in (at, *sorted(edges))]


def pool_at_its_widest(pool: Pool) -> Pool:
    """Return the pool with each number the highest that it has at any hour: what an account must be able to bear."""
    ways = (pool, *(_with(pool, numbers_of(schedule)) for schedule in pool.schedules))
    return replace(
        pool,
        min_agents=max(way.min_agents for way in ways),
        max_agents=max(way.max_agents for way in ways),
        warm_executors=max(way.warm_executors for way in ways),
        warm_pool=max((way.warm_pool for way in ways if way.warm_pool), key=lambda warm: warm.max_agents, default=None),
    )


def numbers_of(schedule: PoolSchedule) -> dict[str, Any]:
    """Return the numbers that a schedule gives, by key."""
    numbers = {key: getattr(schedule, key) for key in _NUMBERS}
    return {key: number for key, number in numbers.items() if number is not None}


def now_and_next(schedule: PoolSchedule, at: float) -> Iterator[Span]:
    """Yield when a schedule holds, from then on for a week; what goes on at once has not ended, and what never ends has no end."""
    joined: list[Span] = []
    for span in _spans(schedule, at, _AHEAD_DAYS):
        if joined and span.begins_at <= joined[-1].ends_at:
            joined[-1] = Span(joined[-1].begins_at, span.ends_at)
        else:
            joined.append(span)
    for span in joined:
        if span.ends_at > at:
            yield replace(span, ends_at=inf) if span.ends_at - span.begins_at > _FOR_EVER_SECONDS else span


def moment(at: float, now: float, zone: tzinfo) -> str:
    """Write an instant as clocks there show it, with the day where it is not today's: "18:00 Europe/Berlin"."""
    then, today = (datetime.fromtimestamp(one, zone) for one in (at, now))
    return f"{then:%H:%M} {zone}" if then.date() == today.date() else f"{then:%a %d %b %H:%M} {zone}"


def boundaries(schedule: PoolSchedule, at: float) -> Iterator[float]:
    """Yield when it begins and when it ends, within a week from then and a day before it."""
    for span in _spans(schedule, at, _AHEAD_DAYS):
        yield from (span.begins_at, span.ends_at)


def _that_holds(pool: Pool, spans: Iterable[Iterable[Span]], at: float) -> Pool:
    """Return the pool with the numbers that it has then. ``spans``: of each of its schedules, those that may hold then."""
    given: dict[str, Any] = {}
    for schedule, its in zip(pool.schedules, spans, strict=True):
        if any(span.holds(at) for span in its):
            given |= numbers_of(schedule)
    return _with(pool, given) if given else pool


def _with(pool: Pool, numbers: Mapping[str, Any]) -> Pool:
    off = {"warm_pool": None} if numbers.get("warm_pool") is False else {}
    return replace(pool, **{**numbers, **off})


def _spans(schedule: PoolSchedule, at: float, days_ahead: int) -> Iterator[Span]:
    """Yield its spans that begin from the day before until so many days later, the earliest first."""
    zone, today = schedule.time_zone, datetime.fromtimestamp(at, schedule.time_zone).date()
    for day in (today + timedelta(days=ahead) for ahead in range(-1, days_ahead + 1)):
        if day.weekday() in schedule.days:
            span = Span(_instant(day, schedule.from_minute, zone), _instant(day, schedule.to_minute, zone))
            if span.begins_at < span.ends_at:  # else clocks are put forward over all of it
                yield span


def _instant(day: date, minutes: int, zone: tzinfo) -> float:
    """Return the first instant at which clocks there show so many minutes of a day, or a later time."""
    shown = datetime.combine(day, time()) + timedelta(minutes=minutes)
    latest = shown.replace(tzinfo=zone).timestamp()
    if _clock(latest, zone) == shown:
        return latest
    earliest = shown.replace(tzinfo=zone, fold=1).timestamp()  # between the two clocks are put forward
    while latest - earliest > 1.0:
        middle = (earliest + latest) // 2
        earliest, latest = (earliest, middle) if _clock(middle, zone) >= shown else (middle, latest)
    return latest


def _clock(at: float, zone: tzinfo) -> datetime:
    return datetime.fromtimestamp(at, zone).replace(tzinfo=None)
