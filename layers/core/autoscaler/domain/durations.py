"""How long builds take, learned from what was seen on executors, and when an executor will be free."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import ceil, inf

from autoscaler.domain.numbers import ASSUMED_DURATION_SECONDS, NEVER_FREE_FACTOR


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Median and eightieth percentile, seconds."""

    p50_seconds: float
    p80_seconds: float


_ASSUMED = Quantiles(ASSUMED_DURATION_SECONDS, ASSUMED_DURATION_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A build on an executor, or an item in the queue, since when we see it."""

    job: str
    pool: str
    since_at: float
    node: str = ""
    run: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Streak:
    """Builds that failed in a row on one node, with none that succeeded in between; ``jobs``: whose, without repeats."""

    failures: int
    since_at: float
    jobs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSeen:
    """A pipeline run, and what it had when last seen: ids of items, keys of builds."""

    project: str
    stage: str  # what it has in its stage, roughly: the name under which stages are learned
    since_at: float
    left_at: float | None = None  # when it was seen last, where it has nothing now
    items: tuple[int, ...] = ()
    builds: Mapping[str, str] = field(default_factory=dict)  # with their pools


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSeen:
    """How a stage of a project went: seconds until the next one with what came then, by pool, and seconds of those that were the last."""

    followed: tuple[tuple[float, Mapping[str, int]], ...] = ()
    ended: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """When a job that comes at the same time every period comes next, and how likely. ``kind``: under which it is noted whether it does."""

    at: float
    period_seconds: float
    share: float
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Borne:
    """How many guesses of a kind came true lately, and how many did not; those of long ago count less."""

    true: float = 0.0
    false: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """When a job was asked for: the last times, and what is expected of it. ``count``: how often in all."""

    pool: str
    times: tuple[float, ...]
    count: int
    expected: tuple[Expected, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequel:
    """The job after which another one comes: seconds until it did, and how often it did not."""

    after: str
    delays: tuple[float, ...]
    missed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What was learned on one controller: the last durations per job and pool, what runs and what waits now."""

    samples: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    running: Mapping[str, Sighting] = field(default_factory=dict)
    waiting: Mapping[str, float] = field(default_factory=dict)  # item -> seconds it had waited when last seen
    runs: Mapping[str, RunSeen] = field(default_factory=dict)
    stages: Mapping[str, StageSeen] = field(default_factory=dict)  # by project and number
    arrivals: Mapping[str, Arrivals] = field(default_factory=dict)  # by job
    rhythms: Mapping[str, Borne] = field(default_factory=dict)  # by period, and how often the job had come: "3600 2/4"
    sequels: Mapping[str, Sequel] = field(default_factory=dict)  # by the job that follows
    streaks: Mapping[str, Streak] = field(default_factory=dict)  # by node
    succeeded_at: Mapping[str, float] = field(default_factory=dict)  # when a build last succeeded, by pool
    seen_at: float = 0.0
    version: int = 0

    def tells_what(self, other: "Learned") -> bool:
        """Tell whether nothing but time has passed: nothing ran or waited, then or now."""
        return replace(self, seen_at=0.0) == replace(other, seen_at=0.0) and not (self.running or self.waiting or self.runs)


def quantiles_of(learned: Learned, job: str, pool: str) -> Quantiles:
    """The best guess: this job in this pool, else the pool's, else what is assumed of any build."""
    return quantiles_of_job(learned, job, pool) or quantiles_of_job(learned, "", pool) or _ASSUMED


def quantiles_of_job(learned: Learned, job: str, pool: str) -> Quantiles | None:
    """What was seen of this very job in this pool; None before it ended there."""
    samples = learned.samples.get(job_key(job, pool))
    return quantiles(samples) if samples else None


def job_key(job: str, pool: str) -> str:
    """The name under which a job's durations are kept."""
    return f"{pool}\n{job}"


def pool_key(pool: str) -> str:
    """The name under which all durations of a pool are kept: those of the job without a name."""
    return job_key("", pool)


@lru_cache(maxsize=10_000)
def quantiles(samples: tuple[float, ...]) -> Quantiles:
    """Nearest-rank p50 and p80 of at least one sample."""
    ordered = sorted(samples)
    return Quantiles(*(ordered[max(0, ceil(share * len(ordered)) - 1)] for share in (0.5, 0.8)))


def remaining_seconds(elapsed_seconds: float, job_p80_seconds: float | None, pool_p80_seconds: Callable[[], float]) -> float:
    """Expect the end of a build; `inf`: do not count on it.

    Unknown jobs and those beyond their p80 are given as much again as they have run, at least the pool's p80.
    """
    if job_p80_seconds is not None:
        if elapsed_seconds > NEVER_FREE_FACTOR * job_p80_seconds:
            return inf
        if elapsed_seconds <= job_p80_seconds:
            return job_p80_seconds - elapsed_seconds
    return max(elapsed_seconds, pool_p80_seconds())
