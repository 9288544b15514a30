"""How long a build has run, how much longer it takes, and whether that is more than a guess."""

from math import inf

from autoscaler.domain.facts.memory import Learned
from autoscaler.domain.facts.snapshot import Build
from autoscaler.domain.forecast.durations import quantiles_of, quantiles_of_job, remaining_seconds


def elapsed_seconds(build: Build, learned: Learned, now: float) -> float:
    """Return how long a build has had its executor: by Jenkins, if plausible, else since we first saw it."""
    if build.elapsed_seconds is not None:
        return build.elapsed_seconds
    seen = learned.running.get(build.key)
    return now - seen.since_at if seen else 0.0


def build_remaining_seconds(build: Build, pool: str, learned: Learned, now: float, queued_runs: frozenset[str]) -> float:
    """Estimate the end of one build; `inf` if its own run still waits in the queue."""
    if build.run and build.run in queued_runs:
        return inf
    elapsed, job_p80 = elapsed_seconds(build, learned, now), _job_p80(build, pool, learned)
    return remaining_seconds(elapsed, job_p80, lambda: quantiles_of(learned, "", pool).p80_seconds)


def ends_in_time(build: Build, pool: str, learned: Learned, now: float) -> bool:
    """Tell whether the end of a build is no mere guess: others of its job were seen, and it has taken no longer."""
    job_p80 = _job_p80(build, pool, learned)
    return job_p80 is not None and elapsed_seconds(build, learned, now) <= job_p80


def _job_p80(build: Build, pool: str, learned: Learned) -> float | None:
    known = quantiles_of_job(learned, build.job, pool)
    return known.p80_seconds if known else build.estimate_seconds
