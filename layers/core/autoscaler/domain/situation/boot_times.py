"""Boots and starts that were seen lately, once there are enough of them to be believed."""

from collections.abc import Iterable, Mapping
from statistics import median

from autoscaler.domain.facts.memory import Memory
from autoscaler.domain.situation.agents import Agent

# p50 of the boots seen is used once there are this many.
BOOTS_TO_TRUST = 10
# If even the quickest of so many starts was slower than is believed, that is believed no longer: agents would be stopped too soon.
STARTS_TO_DOUBT = 3
_KEPT = 50


def trusted_boots(memory: Memory, pool: str) -> tuple[float, ...]:
    """How long agents of a pool took to boot lately, in seconds; none before enough were seen."""
    return _trusted(memory.boots.get(pool, ()))


def trusted_starts(memory: Memory, pool: str) -> tuple[float, ...]:
    """How long stopped agents of a pool took to start lately, likewise."""
    return _trusted(memory.starts.get(pool, ()))


def usual_start_seconds(memory: Memory, pool: str, believed_seconds: float) -> float:
    """How long a stopped agent of a pool takes to start: p50 of the starts seen. Of a few the quickest, if it took longer than believed."""
    if starts := trusted_starts(memory, pool):
        return median(starts)
    few = memory.starts.get(pool, ())
    return max(believed_seconds, min(few)) if len(few) >= STARTS_TO_DOUBT else believed_seconds


def _trusted(times: tuple[float, ...]) -> tuple[float, ...]:
    """Leave out what cannot be: a clock was wrong."""
    possible = tuple(seconds for seconds in times if seconds > 0.0)
    return possible if len(possible) >= BOOTS_TO_TRUST else ()


def note_times(known: Mapping[str, tuple[float, ...]], unnoted: Iterable[Agent]) -> dict[str, tuple[float, ...]]:
    """Note how long each agent took from its launch, or its start, to its registration; what cannot be was measured by a wrong clock."""
    times = dict(known)
    for agent in unnoted:
        record = agent.record
        seconds = (record.registered_at or 0.0) - record.began_at
        if record.is_measured and 0.0 < seconds <= agent.pool.boot_timeout_seconds:
            times[record.pool] = (*times.get(record.pool, ()), seconds)[-_KEPT:]
    return times


def note_vain_starts(known: Mapping[str, tuple[float, ...]], vain: Iterable[tuple[str, float]]) -> dict[str, tuple[float, ...]]:
    """Note starts that failed, by pool and as the seconds that jobs waited for them: if many fail, a start is no faster than a boot.

    If none was seen to work, they say nothing of how long one takes; their trial decides.
    """
    times = dict(known)
    for pool, seconds in vain:
        if pool in times:
            times[pool] = (*times[pool], seconds)[-_KEPT:]
    return times
