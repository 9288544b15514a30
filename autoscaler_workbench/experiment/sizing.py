"""Sizes pools by what their jobs need: the machine, its executors, the jobs that weigh more than one, and those for a pool of their own.

An executor is worth an equal share of the machine's memory and processors. A job weighs as many executors as its peak memory, and its mean
use of processors, fill. Weights leave jobs as they are, and Jenkins may still put a heavy build beside others before anybody looks. Where
jobs of alike needs have a pool of their own, as many executors as fit of the greediest among them, no machine can ever have too much.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from math import ceil
from typing import Any

from autoscaler.config.prices import carried_prices, shapes, types_of
from autoscaler.config.settings import FleetSettings, PoolSettings

# The operating system, the agent's Java, and what grows by the next release.
_KEPT_FREE = 0.15
_MOST_EXECUTORS = 64
_MOST_POOLS = 3
# Another pool has idle agents of its own: it must save more than this of what the builds cost.
_WORTH_A_POOL = 0.1
# Cheaper by less than this is no reason for more executors, which only make what is written harder to read.
_ALIKE = 0.02
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class JobNeed:
    """What the builds of a job take in a pool. ``memory_gib``: peak; ``cores``: mean; ``hours``: of all its builds that were seen.

    ``uses_gpu``: None where nobody measured it.
    """

    job: str
    pool: str
    memory_gib: float
    cores: float
    hours: float
    uses_gpu: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """A machine for a pool, its executors, the weights of jobs that take more than one, and what an hour of the machine costs."""

    instance_type: str
    executors: int
    usd_per_hour: float
    weights: Mapping[str, int] = field(default_factory=dict)
    usd: float = 0.0  # of the builds that were seen, packed without a gap


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A pool for some jobs: a machine, and as many executors as fit whichever of their builds meet."""

    jobs: tuple[str, ...]
    instance_type: str
    executors: int
    usd_per_hour: float
    usd: float  # of the builds that were seen, packed without a gap


def size_pool(name: str, pool: PoolSettings, needs: Sequence[JobNeed]) -> Sizing | None:
    """Find the machine and the executors with which a pool's jobs cost least; None where nothing is known of them, or of its machines.

    The machines: its own, and of the same make those with more or less memory for a processor.
    """
    mine = [need for need in needs if need.pool == name and need.hours > 0]
    found = [sizing for kind, usd in _candidates(pool) for sizing in _on(kind, usd, mine)] if mine else []
    if not found:
        return None
    least = min(sizing.usd for sizing in found)
    alike = [sizing for sizing in found if sizing.usd <= least * (1 + _ALIKE)]
    return min(alike, key=lambda sizing: (sizing.executors, sizing.usd, sizing.instance_type))


def split_pool(name: str, pool: PoolSettings, needs: Sequence[JobNeed], *, same_machine: bool = False) -> list[Part]:
    """Split a pool into as few as pay, each with the machine and executors that its greediest job allows; empty as in `size_pool`.

    ``same_machine``: of the pool's present instance type.
    """
    mine = sorted(
        (need for need in needs if need.pool == name and need.hours > 0), key=lambda need: (need.memory_gib, need.cores, need.job)
    )
    candidates = [(kind, usd) for kind, usd in _candidates(pool) if kind == _present(pool) or not same_machine]
    best: list[Part] = []
    for pools in range(1, min(_MOST_POOLS, len(mine)) + 1):
        cheapest = _cheapest(mine, pools, candidates)
        if cheapest and (not best or _usd(cheapest) < (1 - _WORTH_A_POOL) * _usd(best)):
            best = cheapest
    return best


def _cheapest(needs: Sequence[JobNeed], pools: int, candidates: Sequence[tuple[str, float]]) -> list[Part] | None:
    """Cut the jobs, who stand by what they need, into so many pools where that costs least."""
    splits = (_parts(needs, cuts, candidates) for cuts in combinations(range(1, len(needs)), pools - 1))
    return min((parts for parts in splits if parts), key=_usd, default=None)


def _parts(needs: Sequence[JobNeed], cuts: Sequence[int], candidates: Sequence[tuple[str, float]]) -> list[Part] | None:
    parts = [_part(needs[since:until], candidates) for since, until in pairwise((0, *cuts, len(needs)))]
    return [part for part in parts if part] if all(parts) else None


def _part(needs: Sequence[JobNeed], candidates: Sequence[tuple[str, float]]) -> Part | None:
    """Find the machine for some jobs that are to share it with nobody else."""
    memory, cores, hours = max(need.memory_gib for need in needs), max(need.cores for need in needs), sum(need.hours for need in needs)
    found = []
    for kind, usd in candidates:
        shape = shapes()[kind]
        fit = int(shape["memory_gib"] * (1 - _KEPT_FREE) / memory) if memory else _MOST_EXECUTORS
        executors = min(fit, max(1, int(shape["vcpu"] / cores)) if cores else fit, _MOST_EXECUTORS)
        if executors:
            jobs = tuple(need.job for need in needs)
            found.append(Part(jobs=jobs, instance_type=kind, executors=executors, usd_per_hour=usd, usd=hours / executors * usd))
    return _plainest(found)


def _plainest(found: Sequence[Part]) -> Part | None:
    """Of machines that cost about the same take the smallest: its last executors stay empty for less."""
    least = min((part.usd for part in found), default=0.0)
    alike = [part for part in found if part.usd <= least * (1 + _ALIKE)]
    return min(alike, key=lambda part: (part.usd_per_hour, part.usd, part.instance_type), default=None)


def _usd(parts: Sequence[Part]) -> float:
    return sum(part.usd for part in parts)


def without_gpu(fleet: FleetSettings, needs: Sequence[JobNeed]) -> Iterator[tuple[JobNeed, str]]:
    """Find the jobs in pools with GPUs that never use one, and the cheapest pool without any whose machine they fit; "" where none is."""
    plain = {name: pool for name, pool in fleet.pools.items() if not _shape(pool).get("gpus", 0)}
    for need in needs:
        pool = fleet.pools.get(need.pool)
        if pool is not None and need.uses_gpu is False and _shape(pool).get("gpus"):
            fitting = [name for name, one in plain.items() if one.platform == pool.platform and _fits(need, _shape(one))]
            yield need, min(fitting, key=lambda one: (_price(plain[one]), one), default="")


def _on(kind: str, usd_per_hour: float, needs: Sequence[JobNeed]) -> Iterator[Sizing]:
    """Try each number of executors on one machine."""
    shape = shapes()[kind]
    memory, cores = shape["memory_gib"] * (1 - _KEPT_FREE), float(shape["vcpu"])
    if any(need.memory_gib > memory for need in needs):
        return
    for executors in range(1, min(_MOST_EXECUTORS, 2 * shape["vcpu"]) + 1):
        weights = {need.job: _weight(need, memory / executors, cores / executors, executors) for need in needs}
        hours = sum(need.hours * weights[need.job] / executors for need in needs)
        yield Sizing(
            instance_type=kind,
            executors=executors,
            usd_per_hour=usd_per_hour,
            weights={job: weight for job, weight in sorted(weights.items()) if weight > 1},
            usd=hours * usd_per_hour,
        )


def _weight(need: JobNeed, memory_gib: float, cores: float, most: int) -> int:
    """Say how many executors a job fills; processors that it would like beyond the machine's only make it slower."""
    return max(1, ceil(need.memory_gib / memory_gib - _ROUNDING), min(most, ceil(need.cores / cores - _ROUNDING)))


def _candidates(pool: PoolSettings) -> list[tuple[str, float]]:
    """Name machines like the pool's own, with their prices: the same generation and maker, with less, as much or more memory."""
    present = _present(pool)
    if present not in shapes() or pool.usd_per_hour is not None:
        return []
    prices = {kind: usd[pool.platform] for kind, usd in carried_prices().items() if pool.platform in usd}
    return sorted((kind, usd) for kind, usd in prices.items() if kind in shapes() and _is_like(kind, present))


def _is_like(kind: str, present: str) -> bool:
    family, size = kind.split(".", 1)
    mine, own = shapes()[present], present.split(".", maxsplit=1)[0]
    kin = {own} if mine["gpus"] else {own, *(letter + own[1:] for letter in "cmr")}
    return family in kin and not size.startswith("metal") and shapes()[kind]["arch"] == mine["arch"]


def _present(pool: PoolSettings) -> str:
    return next(iter(types_of(pool)), "")


def _shape(pool: PoolSettings) -> Mapping[str, Any]:
    return shapes().get(_present(pool), {})


def _fits(need: JobNeed, shape: Mapping[str, Any]) -> bool:
    return bool(shape) and need.memory_gib <= shape["memory_gib"] * (1 - _KEPT_FREE)


def _price(pool: PoolSettings) -> float:
    return carried_prices().get(_present(pool), {}).get(pool.platform, float("inf"))
