"""Boots and starts that were seen lately, once there are enough of them to be believed."""

from autoscaler.domain.facts.memory import Memory

# p50 of the boots seen is used once there are this many.
BOOTS_TO_TRUST = 10


def trusted_boots(memory: Memory, pool: str) -> tuple[float, ...]:
    """How long agents of a pool took to boot lately, in seconds; none before enough were seen."""
    return _trusted(memory.boots.get(pool, ()))


def trusted_starts(memory: Memory, pool: str) -> tuple[float, ...]:
    """How long stopped agents of a pool took to start lately, likewise."""
    return _trusted(memory.starts.get(pool, ()))


def _trusted(times: tuple[float, ...]) -> tuple[float, ...]:
    """Leave out what cannot be: an earlier version noted it, or a clock was wrong."""
    possible = tuple(seconds for seconds in times if seconds > 0.0)
    return possible if len(possible) >= BOOTS_TO_TRUST else ()
