"""Pools as their schedules have them now, with agents launched so early that they are there when a schedule begins."""

from dataclasses import replace
from itertools import islice
from math import ceil, inf
from statistics import median

from autoscaler.domain.facts.fleet import Fleet, Pool
from autoscaler.domain.facts.memory import Memory
from autoscaler.domain.facts.pools import moment, now_and_next, pool_at
from autoscaler.domain.facts.snapshot import RecordState, Snapshot
from autoscaler.domain.situation.boot_times import trusted_boots, trusted_starts
from autoscaler.domain.situation.pool_view import STARTS_TAKE_SHARE

# Of ten agents nine are there by then. All must be there when their schedule begins, and half of them boot more slowly than the median.
_SHARE_IN_TIME = 0.9
_THERE = (RecordState.REQUESTED, RecordState.STARTING, RecordState.REGISTERED)


def scheduled(snapshot: Snapshot, fleet: Fleet) -> Fleet:
    """Return the fleet with the numbers that its pools have now, and the minima for which agents must be launched by now."""
    pools = {pool.name: _prepared(snapshot, pool) for pool in fleet.pools.values() if pool.schedules}
    return replace(fleet, pools={**fleet.pools, **pools}) if pools else fleet


def lead_seconds(snapshot: Snapshot, pool: Pool) -> float:
    """How long before a schedule begins its agents are launched or started: so long as that takes, and until a look sees it."""
    begun = pool_at(pool, snapshot.taken_at + _ready_seconds(snapshot.memory, pool, starts=False) + snapshot.look_every_seconds)
    needed, there, stopped = _floor(begun), _count(snapshot, pool, _THERE), _count(snapshot, pool, (RecordState.STOPPED,))
    starts = stopped > 0 and there + stopped >= needed
    return _ready_seconds(snapshot.memory, pool, starts=starts) + snapshot.look_every_seconds


def told_schedule(pool: Pool, key: str, number: int, now: float) -> str:
    """Say which schedule gives this number, now or next: ", by its schedule from 08:00 Europe/Berlin"; "" where none does."""
    giving = [one for one in reversed(pool.schedules) if getattr(one, key) == number]
    spans = [(span, one.time_zone) for one in giving for span in islice(now_and_next(one, now), 1)]
    if not spans:
        return ""
    span, zone = min(spans, key=lambda found: max(now, found[0].begins_at))
    if span.begins_at > now:
        return f", by its schedule from {moment(span.begins_at, now, zone)}"
    return ", by its schedule" + (f" until {moment(span.ends_at, now, zone)}" if span.ends_at < inf else "")


def _prepared(snapshot: Snapshot, pool: Pool) -> Pool:
    here, soon = (pool_at(pool, snapshot.taken_at + seconds) for seconds in (0.0, lead_seconds(snapshot, pool)))
    return replace(
        here,
        min_agents=max(here.min_agents, soon.min_agents),
        warm_executors=max(here.warm_executors, soon.warm_executors),
        # What is to be there when it begins has room before it: no more than that, since jobs that wait would take it.
        max_agents=max(here.max_agents, min(soon.max_agents, _floor(soon))),
    )


def _floor(pool: Pool) -> int:
    """Count the agents that a pool has without any demand."""
    return max(pool.min_agents, ceil(pool.warm_executors / pool.executors))


def _count(snapshot: Snapshot, pool: Pool, states: tuple[RecordState, ...]) -> int:
    return sum(record.pool == pool.name and record.state in states for record in snapshot.records)


def _ready_seconds(memory: Memory, pool: Pool, *, starts: bool) -> float:
    """How long nine of ten agents take to boot, or to start; before enough were seen as the fleet file says."""
    seen = trusted_starts(memory, pool.name) if starts else trusted_boots(memory, pool.name)
    if seen:
        return sorted(seen)[ceil(_SHARE_IN_TIME * len(seen)) - 1]
    boots = trusted_boots(memory, pool.name)
    return (median(boots) if boots else pool.boot_seconds) * (STARTS_TAKE_SHARE if starts else 1.0)
