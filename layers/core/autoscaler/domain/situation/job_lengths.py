"""The door to jobs that pools decline: a fleet without `max_job_seconds` loads and does nothing of it."""

from collections.abc import Mapping

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.memory import Learned


def with_job_lengths(fleet: Fleet, learned: Mapping[str, Learned]) -> Fleet:
    """Return the fleet with the jobs that its pools decline; the same fleet if no pool states how long jobs may take."""
    if all(pool.max_job_seconds is None for pool in fleet.pools.values()):
        return fleet
    from autoscaler.domain.forecast.declined import with_declined  # noqa: PLC0415 - for fleets with the key only

    return with_declined(fleet, learned)
