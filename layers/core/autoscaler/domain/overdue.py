"""Builds that hang: they run for many times the longest that their job has taken lately.

Not its median, nor its p80: the stages of a pipeline are builds of one job, short ones and long ones.
"""

from autoscaler.domain.durations import Learned, job_key
from autoscaler.domain.numbers import OVERDUE_SAMPLES
from autoscaler.domain.snapshot import Build
from autoscaler.domain.supply import elapsed_seconds


def times_over(build: Build, pool: str, learned: Learned, now: float) -> tuple[float, float]:
    """How many times the longest of its job's last builds in the pool it has run for, and how long that took; 0 of a job seen seldom."""
    samples = learned.samples.get(job_key(build.job, pool), ())
    if len(samples) < OVERDUE_SAMPLES:
        return 0.0, 0.0
    longest = max(*samples, 1.0)
    return elapsed_seconds(build, learned, now) / longest, longest
