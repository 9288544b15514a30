"""Job statistics for people: how long builds wait and take, how they end, what the next one will take, and how good predictions were."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import exp
from typing import Any

from autoscaler.domain.facts.job_stats import Estimate, JobRow, JobTracker, Spread
from autoscaler.domain.facts.memory import TrackRecord
from autoscaler.domain.facts.runs import BlockCounts
from autoscaler.domain.forecast.durations import duration_of, is_of_project, quantile
from autoscaler.domain.report.block_results import BlockFigures, figures_of

_WILD = frozenset("*?[")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """The median and the ninety-fifth percentile, in seconds."""

    p50: float
    p95: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEntry:
    """A job in one pool, or of its builds those with one signature. None: not known.

    ``next``: the predicted duration of the next build; ``off_by``: how far off predictions were, as a share; ``held``, ``starts_held``:
    of predicted ranges the share that held, which is to be four in five.
    """

    controller: str
    job: str
    signature: str
    pool: str
    runs: int
    succeeded: float | None
    waits: Quantiles | None
    durations: Quantiles | None
    next: Estimate | None
    off_by: float | None
    held: float | None
    starts_held: float | None
    first_at: float
    seen_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JobList:
    """What was asked for, and how many entries there are beyond it. ``blocks``: how many node blocks of pipelines have no result here."""

    jobs: tuple[JobEntry, ...]
    left_out: int
    blocks: tuple[BlockFigures, ...] = ()


def list_jobs(
    rows: Iterable[JobRow], trackers: Mapping[str, JobTracker], blocks: Mapping[str, BlockCounts], pattern: str, most: int
) -> JobList:
    """List what is known of jobs that match, those with the most builds first, each with its signatures below it; then whole folders."""
    # A row without builds is one of what builds need alone.
    found = [row for row in rows if row.runs and matches(row.subject.job, pattern)]
    runs: dict[tuple[str, str], int] = {}
    for row in found:
        if not row.subject.signature:
            of_job = row.controller, row.subject.job
            runs[of_job] = runs.get(of_job, 0) + row.runs

    def place(row: JobRow) -> tuple[Any, ...]:
        of_job = row.controller, row.subject.job
        return is_of_project(row.subject), -runs.get(of_job, 0), *of_job, row.subject.signature, row.pool

    found.sort(key=place)
    entries = tuple(job_entry(row, trackers.get(row.controller, JobTracker())) for row in found[:most])
    return JobList(jobs=entries, left_out=max(0, len(found) - most), blocks=figures_of(blocks))


def matches(job: str, pattern: str) -> bool:
    """Tell whether a job is asked for: by a shell pattern, or by a part of its name."""
    job, pattern = job.lower(), pattern.lower()
    return fnmatchcase(job, pattern) if _WILD & set(pattern) else pattern in job


def job_entry(row: JobRow, tracker: JobTracker) -> JobEntry:
    """Write one row for people."""
    return JobEntry(
        controller=row.controller,
        job=row.subject.job,
        signature=row.subject.signature,
        pool=row.pool,
        runs=row.runs,
        succeeded=share_of(row.results),
        waits=_quantiles(row.waits),
        durations=_quantiles(row.durations),
        next=duration_of(row, tracker),
        off_by=exp(row.skill.error / row.skill.weight) - 1.0 if row.skill.weight else None,
        held=share_of(row.ranges),
        starts_held=share_of(row.starts),
        first_at=row.first_at,
        seen_at=row.seen_at,
    )


def share_of(record: TrackRecord) -> float | None:
    """Return the share that came true; None where nothing is known."""
    seen = record.true + record.false
    return record.true / seen if seen else None


def _quantiles(spread: Spread) -> Quantiles | None:
    return Quantiles(p50=quantile(spread, 0.5), p95=quantile(spread, 0.95)) if spread.count else None
