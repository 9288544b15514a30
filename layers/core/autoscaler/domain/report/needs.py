"""What jobs need, for people: memory, processors and GPUs, which jobs are heavy, and which never use the GPU that they occupy."""

from collections.abc import Iterable
from dataclasses import dataclass

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.job_stats import JobRow, Spread, Used
from autoscaler.domain.forecast.durations import is_of_project, quantile
from autoscaler.domain.report.jobs import matches
from autoscaler.domain.report.machine_sizes import size_of_machine

# So many builds without a GPU are no accident.
_BUILDS_WITHOUT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """The median and the ninety-fifth percentile."""

    p50: float
    p95: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedEntry:
    """What builds of a job take in one pool. ``hours``: of all its builds that were seen.

    ``exact``: of builds that were alone on their machine; else of their own processes. ``share``: of the machine's memory that 95 of 100
    builds stay below; ``executor``: the share of the machine that one executor is. ``gpu_used``: in what share of the builds; None where
    the machine has no card. ``heavy``: it takes more memory than its executor's share. ``never_gpu``: none of several builds used the GPU
    that its machine has.
    """

    controller: str
    job: str
    signature: str
    pool: str
    builds: int
    hours: float
    exact: bool
    memory: Need
    cores: Need
    gpu_memory: Need | None
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
    largest: dict[tuple[str, str], float] = {}
    for entry in found:
        of_job = entry.controller, entry.job
        largest[of_job] = max(largest.get(of_job, 0.0), entry.share or 0.0)
    found.sort(key=lambda one: (-largest[one.controller, one.job], one.controller, one.job, one.signature, one.pool))
    return NeedList(needs=tuple(found[:most]), left_out=max(0, len(found) - most))


def _entry(row: JobRow, fleet: Fleet) -> NeedEntry | None:
    needs, pool = row.needs, fleet.pools.get(row.pool)
    exact = needs.alone.memory.count > 0
    used = needs.alone if exact else needs.beside
    memory, cores = _need(used.memory), _need(used.cores)
    if memory is None or cores is None:
        return None
    machine = size_of_machine(needs, pool, fleet)
    share = memory.p95 / machine.memory if machine.memory else None
    executor = 1.0 / pool.executors if pool else None
    gpu_used = _share_of((needs.alone, needs.beside)) if machine.has_gpu else None
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
        gpu_memory=_need(used.gpu_memory),
        gpu_used=gpu_used,
        share=share,
        executor=executor,
        heavy=share is not None and executor is not None and share > executor,
        never_gpu=gpu_used == 0.0 and builds >= _BUILDS_WITHOUT,
        seen_at=max(used.memory.at, 0.0),
    )


def _need(spread: Spread) -> Need | None:
    return Need(p50=quantile(spread, 0.5), p95=quantile(spread, 0.95)) if spread.count else None


def _share_of(both: Iterable[Used]) -> float | None:
    records = [used.gpu for used in both]
    true, seen = sum(one.true for one in records), sum(one.true + one.false for one in records)
    return true / seen if seen else None
