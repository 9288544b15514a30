"""Jobs that pools decline, though their labels would do: builds of them are predicted to run for longer than `max_job_seconds`.

Only a fleet with such a pool loads this. The prediction is the median of the builds that ended in the pool itself. Before a build of the
job has ended there, other pools tell, and the one where it ran fastest counts. They say nothing about parts of pipelines: a short step in
one pool may follow an hour in another. A job of which nobody has seen a build end is declined by no pool.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import inf

from autoscaler.domain.facts.fleet import Fleet, Pool
from autoscaler.domain.facts.job_settings import Decline, Declined
from autoscaler.domain.facts.memory import Learned
from autoscaler.domain.forecast.durations import quantiles
from autoscaler.domain.grouping import grouped


def with_declined(fleet: Fleet, learned: Mapping[str, Learned]) -> Fleet:
    """Return the fleet with the jobs that its pools decline, by what was learned on each controller."""
    by_pool: dict[tuple[str, str], Mapping[str, Decline]] = {}
    for controller, known in learned.items():
        if limited := [pool for pool in fleet.pools_of(controller) if pool.max_job_seconds is not None]:
            seen = ((key.partition("\n"), samples) for key, samples in known.samples.items())
            # The entry without a job is of all builds of a pool.
            by_job = grouped((job, (pool_name, samples)) for (pool_name, _, job), samples in seen if job and samples)
            durations = {job: dict(of_pools) for job, of_pools in by_job.items()}
            by_pool |= {(controller, pool.name): dict(_too_long(pool, durations)) for pool in limited}
    return replace(fleet, declined=Declined(by_pool=by_pool))


def _too_long(pool: Pool, seen: Mapping[str, Mapping[str, tuple[float, ...]]]) -> Iterator[tuple[str, Decline]]:
    most = inf if pool.max_job_seconds is None else pool.max_job_seconds
    for job, by_pool in seen.items():
        # Elsewhere where it takes least: if even that is too long, no pool is known where it would be short.
        where = pool.name if pool.name in by_pool else min(by_pool, key=lambda name: (quantiles(by_pool[name]).p50_seconds, name))
        seconds = quantiles(by_pool[where]).p50_seconds
        if seconds > most:
            yield job, Decline(pool=pool.name, seconds=seconds, builds=len(by_pool[where]), seen_in=where, most_seconds=most)
