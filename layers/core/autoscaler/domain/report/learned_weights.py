"""How much jobs weigh, by what their builds were seen to need of the machines of their pool."""

from collections.abc import Iterable, Mapping
from math import ceil

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.job_settings import Source
from autoscaler.domain.facts.job_stats import JobRow
from autoscaler.domain.forecast.durations import is_of_project, quantile
from autoscaler.domain.report.machine_sizes import size_of_machine

# Each pass reads them: those that weigh least are left out.
WEIGHTS_KEPT = 500
# One build may have been an exception.
_BUILDS_SEEN = 3
_SHARE = 0.95


def next_weights(known: Mapping[str, int], rows: Iterable[JobRow], fleet: Fleet) -> dict[str, int]:
    """Carry weights on by the rows of the jobs that ended. If a job ran in several pools, the largest weight counts."""
    found: dict[str, int] = {}
    for row in rows:
        if weight := _weight(row, fleet):
            found[row.subject.job] = max(weight, found.get(row.subject.job, 1))
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
