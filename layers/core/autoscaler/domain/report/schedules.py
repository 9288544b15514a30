"""The schedules of pools for people: which hold now, which begin next, and when, by their own clocks and the reader's."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, tzinfo
from itertools import islice
from math import inf
from typing import Any

from autoscaler.domain.facts.fleet import Fleet, Pool, PoolSchedule, WarmPool
from autoscaler.domain.facts.pools import Span, moment, now_and_next, numbers_of
from autoscaler.domain.situation.pool_view import lead_seconds
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import duration


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleEntry:
    """A schedule of a pool that holds now, or is the next to begin. ``numbers``: what the pool has by it.

    ``at``: when it ends, or begins; None where it never ends. ``there``: the same by the clocks of its time zone.
    """

    pool: str
    numbers: str
    holds: bool
    at: float | None
    there: str


def list_schedules(fleet: Fleet, now: float) -> tuple[ScheduleEntry, ...]:
    """List of each pool the schedules that hold now, with what they give it, and those that begin next."""
    return tuple(entry for pool in fleet.pools.values() for entry in _of_pool(pool, now))


def told_entry(entry: Mapping[str, Any], now: float, zone_of: Callable[[float], tzinfo | None]) -> str:
    """Say what a pool has by a schedule, and until or from when. ``zone_of``: the reader's time zone at an instant."""
    said, at = f"{entry['numbers']} by schedule", entry["at"]
    if at is None:
        return f"{said} at all hours"
    here = moment(at, now, zone_of(at) or UTC)
    same = here.startswith(entry["there"].rpartition(" ")[0] + " ")
    when = entry["there"] if same else f"{entry['there']} ({here})"
    return f"{said} until {when}, for another {duration(at - now)}" if entry["holds"] else f"{said} from {when}, in {duration(at - now)}"


def told_schedules(situation: Situation, pool: Pool) -> Iterator[str]:
    """Say what a pool of the fleet file has by its schedules now and next, and how long before they begin agents are launched for it."""
    entries = list(_of_pool(pool, situation.now))
    yield from (told_entry(asdict(entry), situation.now, lambda _: UTC) for entry in entries)
    if any(not entry.holds for entry in entries):
        yield f"agents for a schedule are launched or started {duration(lead_seconds(situation.snapshot, pool))} before it begins"


def _of_pool(pool: Pool, now: float) -> Iterator[ScheduleEntry]:
    spans = [(schedule, span) for schedule in pool.schedules for span in islice(now_and_next(schedule, now), 2)]
    yield from _holding(pool, [one for one in spans if one[1].holds(now)], now)
    coming = [(schedule, span) for schedule, span in spans if not span.holds(now)]
    first = min((span.begins_at for _, span in coming), default=inf)
    yield from (_entry(pool, schedule, numbers_of(schedule), span, now) for schedule, span in coming if span.begins_at == first)


def _holding(pool: Pool, spans: Sequence[tuple[PoolSchedule, Span]], now: float) -> Iterator[ScheduleEntry]:
    """List what holds now, each without what a later one gives instead."""
    for place, (schedule, span) in enumerate(spans):
        later = {key for other, _ in spans[place + 1 :] for key in numbers_of(other)}
        if given := {key: number for key, number in numbers_of(schedule).items() if key not in later}:
            yield _entry(pool, schedule, given, span, now)


def _entry(pool: Pool, schedule: PoolSchedule, numbers: Mapping[str, Any], span: Span, now: float) -> ScheduleEntry:
    holds = span.holds(now)
    at = span.ends_at if holds else span.begins_at
    return ScheduleEntry(
        pool=pool.name,
        numbers=", ".join(f"{key} {_told(number)}" for key, number in numbers.items()),
        holds=holds,
        at=None if at == inf else at,
        there="" if at == inf else moment(at, now, schedule.time_zone),
    )


def _told(number: object) -> str:
    if isinstance(number, WarmPool):
        return f"of {number.min_agents} to {number.max_agents} stopped agents"
    return "off" if number is False else str(number)
