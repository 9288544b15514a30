"""How long builds take, learned from builds on executors, and when an executor will be free."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, inf

from autoscaler.domain.facts.memory import Learned

# Beyond p80 a build is overdue; beyond three times p80 it is taken to hold its executor for good.
NEVER_FREE_FACTOR = 3.0
# Before a pool has seen one build end: ten minutes, the middle of the CI jobs we have traces of.
ASSUMED_DURATION_SECONDS = 600.0
_LEAST_SECONDS = 1.0
_PER_JOB, _PER_POOL = 20, 200


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Median and eightieth percentile, seconds."""

    p50_seconds: float
    p80_seconds: float


_ASSUMED = Quantiles(ASSUMED_DURATION_SECONDS, ASSUMED_DURATION_SECONDS)


def quantiles_of(learned: Learned, job: str, pool: str) -> Quantiles:
    """Return the best estimate: of this job in this pool, else of the pool, else the assumed one."""
    known = quantiles_of_job(learned, job, pool)
    return known or (quantiles_of_job(learned, "", pool) if job else None) or _ASSUMED


def quantiles_of_job(learned: Learned, job: str, pool: str) -> Quantiles | None:
    """Return the durations seen of this job in this pool; None before a build of it ended there."""
    samples = learned.samples.get(job_key(job, pool))
    return quantiles(samples) if samples else None


def note_duration(samples: dict[str, tuple[float, ...]], job: str, pool: str, seconds: float) -> None:
    """Note how long a build took, for its job in that pool and for the pool."""
    for key, kept in ((job_key(job, pool), _PER_JOB), (pool_key(pool), _PER_POOL)):
        # Popped and put back: the jobs seen last stand last, and are kept.
        samples[key] = (*samples.pop(key, ()), round(seconds, 1))[-kept:]


def job_key(job: str, pool: str) -> str:
    """Name the key of a job's durations."""
    return f"{pool}\n{job}"


def pool_key(pool: str) -> str:
    """Name the key of all durations of a pool: those of the job without a name."""
    return job_key("", pool)


@lru_cache(maxsize=10_000)
def quantiles(samples: tuple[float, ...]) -> Quantiles:
    """Nearest-rank p50 and p80 of at least one sample."""
    ordered = sorted(samples)
    return Quantiles(*(ordered[max(0, ceil(share * len(ordered)) - 1)] for share in (0.5, 0.8)))


def remaining_seconds(elapsed_seconds: float, job_p80_seconds: float | None, pool_p80_seconds: Callable[[], float]) -> float:
    """Estimate the remaining time of a build; `inf`: do not count on its end.

    Unknown jobs and those beyond their p80 are given as much again as they have run, at least the pool's p80.
    A build that runs takes a second more at least: its executor is not free.
    """
    if job_p80_seconds is not None:
        if elapsed_seconds > NEVER_FREE_FACTOR * job_p80_seconds:
            return inf
        if elapsed_seconds <= job_p80_seconds:
            return max(job_p80_seconds - elapsed_seconds, _LEAST_SECONDS)
    return max(elapsed_seconds, pool_p80_seconds())
