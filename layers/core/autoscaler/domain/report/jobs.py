"""Job statistics for people: how long builds wait and take, how they end, what they need of their machine, how good predictions were."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from math import ceil, exp

from autoscaler.domain.facts.fleet import Fleet, Pool, machines_of
from autoscaler.domain.facts.job_settings import Source
from autoscaler.domain.facts.job_stats import Estimate, JobRow, JobTracker, MachineSize, Needs, Spread, Subject
from autoscaler.domain.facts.memory import TrackRecord
from autoscaler.domain.facts.runs import BlockCounts, BlockEnd, BuildResult, GoneBlock
from autoscaler.domain.forecast.durations import duration_of, is_of_project, next_record, quantile, subjects_of
from autoscaler.domain.grouping import grouped, summed

# How large the machine is that a build of a job would run on. No single report decides it.


_GIB = 2.0**30


def size_of_machine(needs: Needs, pool: Pool | None, fleet: Fleet) -> MachineSize:
    """Return the smallest machine of the pool; if nobody says how large its machines are, the one that most reports were of."""
    machines = machines_of(pool, fleet) if pool else []
    memories = [machine.memory_gib for machine in machines if machine.memory_gib]
    processors = [machine.vcpu for machine in machines if machine.vcpu]
    known = machines and len(memories) == len(processors) == len(machines)
    return MachineSize(
        memory=min(memories) * _GIB if known else _usual(needs.ran_on.memory),
        cores=float(min(processors)) if known else _usual(needs.ran_on.cores),
        has_gpu=needs.ran_on.gpu.true > needs.ran_on.gpu.false,
    )


def _usual(spread: Spread) -> float:
    return quantile(spread, 0.5) if spread.count else 0.0


# How much jobs weigh, by what their builds were seen to need of the machines of their pool.


# Each pass reads them: those that weigh least are left out.
WEIGHTS_KEPT = 500
# One build may have been an exception.
_BUILDS_SEEN = 3
_SHARE = 0.95


def next_weights(known: Mapping[str, int], rows: Iterable[JobRow], fleet: Fleet) -> dict[str, int]:
    """Carry weights on by the rows of the jobs that ended. If a job ran in several pools, the largest weight counts."""
    weights = grouped((row.subject.job, weight) for row in rows if (weight := _weight(row, fleet)))
    found = {job: max(of_job) for job, of_job in weights.items()}
    heavy = [(job, weight) for job, weight in {**known, **found}.items() if weight > 1 and fleet.weights.source_of(job) is Source.LEARNED]
    return dict(sorted(sorted(heavy, key=lambda one: (-one[1], one[0]))[:WEIGHTS_KEPT]))


def _weight(row: JobRow, fleet: Fleet) -> int | None:
    """Say how many executors of its pool's machine a job fills: those alone on a machine are believed first. None: not known yet."""
    pool, needs = fleet.pools.get(row.pool), row.needs
    used = needs.alone if needs.alone.memory.count >= _BUILDS_SEEN else needs.beside
    if pool is None or row.subject.signature or is_of_project(row.subject) or used.memory.count < _BUILDS_SEEN:
        return None
    machine = size_of_machine(needs, pool, fleet)
    if not machine.memory:
        return None
    shares = [quantile(used.memory, _SHARE) / machine.memory]
    if machine.cores and used.cores.count:
        shares.append(quantile(used.cores, _SHARE) / machine.cores)
    return min(pool.executors, max(1, ceil(max(shares) * pool.executors - 1e-6)))


# Results of node blocks for people: in the rows of their jobs and stages, and how many of a controller's blocks count for nobody.


Ends = Iterable[tuple[GoneBlock, BlockEnd]]
Rows = Mapping[tuple[Subject, str], JobRow]  # by subject and pool


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockFigures:
    """Node blocks of one controller's pipelines that left their executors lately.

    ``unassigned``: the share that counts for no node; the others: shares of these, by cause, as `facts.blocks.BlockCounts` has them.
    """

    controller: str
    blocks: int
    unassigned: float
    ambiguous: float
    unmatched: float
    run_gone: float
    too_large: float


def subjects_of_blocks(ends: Ends) -> frozenset[Subject]:
    """Return whose statistics these ends count in."""
    return frozenset(subject for block, end in ends if end.result for subject in subjects_of(block.job, block.run, block.signature))


def note_blocks(rows: Rows, ends: Ends) -> list[JobRow]:
    """Note in the rows that are there how blocks ended: they may have left their executors in an earlier look."""
    changed: dict[tuple[Subject, str], JobRow] = {}
    for block, end in ends:
        for subject in subjects_of(block.job, block.run, block.signature) if end.result else ():
            place = subject, block.pool
            if row := changed.get(place, rows.get(place)):
                changed[place] = replace(row, results=next_record(row.results, end.result is BuildResult.SUCCEEDED))
    return list(changed.values())


def figures_of(counts: Mapping[str, BlockCounts]) -> tuple[BlockFigures, ...]:
    """Describe the node blocks of each controller that has pipelines."""
    seen = ((controller, known, known.assigned + known.unassigned) for controller, known in sorted(counts.items()))
    shares = ("unassigned", "ambiguous", "unmatched", "run_gone", "too_large")
    return tuple(
        BlockFigures(controller=controller, blocks=round(blocks), **{name: getattr(known, name) / blocks for name in shares})
        for controller, known, blocks in seen
        if blocks
    )


# Lists of job statistics.


_WILD = frozenset("*?[")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """The median and the ninety-fifth percentile: of seconds, of bytes or of cores."""

    p50: float
    p95: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JobInPool:
    """A job in one pool, or those of its builds that have one signature."""

    controller: str
    job: str
    signature: str
    pool: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEntry(JobInPool):
    """A job in one pool, with its statistics. None: not known.

    ``next``: the predicted duration of the next build; ``off_by``: how far off predictions were, as a share; ``held``, ``starts_held``:
    of predicted ranges the share that held, which is to be four in five.
    """

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
    runs = summed(((row.controller, row.subject.job), row.runs) for row in found if not row.subject.signature)
    found.sort(
        key=lambda row: (is_of_project(row.subject), -runs.get((row.controller, row.subject.job), 0), row.controller, row.subject, row.pool)
    )
    entries = tuple(
        JobEntry(
            controller=row.controller,
            job=row.subject.job,
            signature=row.subject.signature,
            pool=row.pool,
            runs=row.runs,
            succeeded=share_of(row.results),
            waits=_quantiles(row.waits),
            durations=_quantiles(row.durations),
            next=duration_of(row, trackers.get(row.controller, JobTracker())),
            off_by=exp(row.skill.error / row.skill.weight) - 1.0 if row.skill.weight else None,
            held=share_of(row.ranges),
            starts_held=share_of(row.starts),
            first_at=row.first_at,
            seen_at=row.seen_at,
        )
        for row in found[:most]
    )
    return JobList(jobs=entries, left_out=max(0, len(found) - most), blocks=figures_of(blocks))


def matches(job: str, pattern: str) -> bool:
    """Tell whether a job is asked for: by a shell pattern, or by a part of its name."""
    job, pattern = job.lower(), pattern.lower()
    return fnmatchcase(job, pattern) if _WILD & set(pattern) else pattern in job


def share_of(record: TrackRecord) -> float | None:
    """Return the share that came true; None where nothing is known."""
    seen = record.true + record.false
    return record.true / seen if seen else None


def _quantiles(spread: Spread) -> Quantiles | None:
    return Quantiles(p50=quantile(spread, 0.5), p95=quantile(spread, 0.95)) if spread.count else None


# What jobs need, for people: memory, processors and GPUs, which jobs are heavy, and which never use the GPU that they occupy.


# So many builds without a GPU are no accident.
_BUILDS_WITHOUT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedEntry(JobInPool):
    """What builds of a job take in one pool. ``hours``: of all its builds that were seen.

    ``exact``: of builds that were alone on their machine; else of their own processes. ``share``: of the machine's memory that 95 of 100
    builds stay below; ``executor``: the share of the machine that one executor is. ``gpu_used``: in what share of the builds; None where
    the machine has no card. ``heavy``: it takes more memory than its executor's share. ``never_gpu``: none of several builds used the GPU
    that its machine has.
    """

    builds: int
    hours: float
    exact: bool
    memory: Quantiles
    cores: Quantiles
    gpu_memory: Quantiles | None
    gpu_used: float | None
    share: float | None
    executor: float | None
    heavy: bool
    never_gpu: bool
    seen_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedList:
    """What was asked for, and how many entries there are beyond it."""

    needs: tuple[NeedEntry, ...]
    left_out: int


def list_needs(rows: Iterable[JobRow], fleet: Fleet, pattern: str, most: int) -> NeedList:
    """List what is known of jobs that match: those first that take most of their machine, each with its signatures below it."""
    found = [
        entry for row in rows if matches(row.subject.job, pattern) and not is_of_project(row.subject) and (entry := _entry(row, fleet))
    ]
    shares = grouped(((entry.controller, entry.job), entry.share or 0.0) for entry in found)
    largest = {job: max(of_job) for job, of_job in shares.items()}
    found.sort(key=lambda one: (-largest[one.controller, one.job], one.controller, one.job, one.signature, one.pool))
    return NeedList(needs=tuple(found[:most]), left_out=max(0, len(found) - most))


def _entry(row: JobRow, fleet: Fleet) -> NeedEntry | None:
    needs, pool = row.needs, fleet.pools.get(row.pool)
    exact = needs.alone.memory.count > 0
    used = needs.alone if exact else needs.beside
    memory, cores = _quantiles(used.memory), _quantiles(used.cores)
    if memory is None or cores is None:
        return None
    machine = size_of_machine(needs, pool, fleet)
    share = memory.p95 / machine.memory if machine.memory else None
    executor = 1.0 / pool.executors if pool else None
    alone, beside = needs.alone.gpu, needs.beside.gpu
    both = TrackRecord(true=alone.true + beside.true, false=alone.false + beside.false)
    gpu_used = share_of(both) if machine.has_gpu else None
    builds = needs.alone.memory.count + needs.beside.memory.count
    return NeedEntry(
        controller=row.controller,
        job=row.subject.job,
        signature=row.subject.signature,
        pool=row.pool,
        builds=builds,
        hours=row.runs * quantile(row.durations, 0.5) / 3600.0 if row.durations.count else 0.0,
        exact=exact,
        memory=memory,
        cores=cores,
        gpu_memory=_quantiles(used.gpu_memory),
        gpu_used=gpu_used,
        share=share,
        executor=executor,
        heavy=share is not None and executor is not None and share > executor,
        never_gpu=gpu_used == 0.0 and builds >= _BUILDS_WITHOUT,
        seen_at=max(used.memory.at, 0.0),
    )
