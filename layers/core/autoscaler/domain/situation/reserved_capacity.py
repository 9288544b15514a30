"""When reserved capacity takes its last builds: a block early enough that nearly all of them end before EC2 ends its machines."""

from collections.abc import Iterable
from math import ceil, inf

from autoscaler.domain.facts.fleet import Pool
from autoscaler.domain.facts.memory import Learned
from autoscaler.domain.forecast.durations import pool_key

# Before a pool has seen builds end: an hour, which most CI jobs take less than.
ASSUMED_LONG_BUILD_SECONDS = 3600.0
_SHARE = 0.95


def closes_at(pool: Pool, learned: Iterable[Learned]) -> float:
    """Return from when on agents of a pool take no new builds, since their capacity ends; never where they are of none."""
    capacity = pool.capacity
    if capacity is None or capacity.leaves_at == inf:
        return inf
    return capacity.leaves_at - (long_build_seconds(pool.name, learned) if capacity.block else 0.0)


def long_build_seconds(pool: str, learned: Iterable[Learned]) -> float:
    """Return the 95th percentile of the builds that were seen in a pool."""
    samples = sorted(seconds for one in learned for seconds in one.samples.get(pool_key(pool), ()))
    return samples[ceil(_SHARE * len(samples)) - 1] if samples else ASSUMED_LONG_BUILD_SECONDS
