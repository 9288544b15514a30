"""The measures of a run, in all and by pool: counted in the world, not from what the policy believes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from autoscaler.domain.facts.fleet import Pool
from workbench.fakes.world.ec2.region import Instance
from workbench.fakes.world.jenkins.builds import Build, Ended
from workbench.fakes.world.world import World
from workbench.simulate.replay import Replay
from workbench.simulate.result import (
    dollars_of,
    is_interrupted,
    is_lost,
    pool_of,
    quantile,
    run_seconds,
    seconds_of,
    serving_pools,
    wait_of,
)

_EARLY_SECONDS = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """Of a run or of one pool of it. Waits: seconds from buildable to running; a job that never ran has waited until now.

    ``killed``: by whoever ended their agent. ``interrupted``: EC2 took the machine back. ``late_share``: of the jobs, those that waited
    longer than their pool's boot. ``early_terminations``: within five minutes of the boot's end. ``peak_spare``: the most paid executors
    at once beyond what ran or waited. ``total_usd``: the bill, and what the waiting was worth by the fleet file.
    """

    jobs: int
    finished: int
    killed: int
    interrupted: int
    unservable: int
    usd: float
    wait_hours: float
    total_usd: float
    wait_mean_s: float
    wait_p50_s: float
    wait_p90_s: float
    wait_p95_s: float
    wait_p99_s: float
    wait_max_s: float
    late_share: float
    agent_hours: float
    utilisation: float
    usd_per_busy_hour: float
    launches: int
    early_terminations: int
    peak_spare: int


def measure_run(world: World, replay: Replay, since: float) -> dict[str, Any]:
    """The measures of a run from an instant on, and under ``pools`` of each pool; ``jobs`` counts also those whose turn never came."""
    homes: dict[str, Pool | None] = {}
    for build in replay.judged:
        if build.asks_for not in homes:
            name = next(serving_pools(world.fleet, build), None)
            homes[build.asks_for] = world.fleet.pools[name] if name else None
    pools = [(build, homes[build.asks_for]) for build in replay.judged]
    paid = [i for i in world.ec2.instances.values() if i.ended_at is None or i.ended_at > since]
    whole = _measure(world, pools, paid, since)
    killed = sum(is_lost(build) and not is_interrupted(build) for build in replay.builds)  # nor in the lead-in may any be
    return asdict(whole) | {"jobs": replay.judged_rows, "killed": killed, "pools": dict(_by_pool(world, pools, paid, since))}


def _by_pool(
    world: World, builds: Sequence[tuple[Build, Pool | None]], paid: Sequence[Instance], since: float
) -> Iterator[tuple[str, dict[str, Any]]]:
    instances: dict[str, list[Instance]] = {}
    for instance in paid:
        instances.setdefault(pool_of(world, instance).name, []).append(instance)
    served: dict[str, list[tuple[Build, Pool | None]]] = {}
    for build, pool in builds:
        if pool is not None:
            served.setdefault(pool.name, []).append((build, pool))
    for name in world.fleet.pools:
        if name in served or name in instances:
            yield name, asdict(_measure(world, served.get(name, []), instances.get(name, []), since))


def _measure(world: World, builds: Sequence[tuple[Build, Pool | None]], instances: Sequence[Instance], since: float) -> Measures:
    now = world.timeline.now
    served = [(build, pool) for build, pool in builds if pool is not None]
    waited = [(wait_of(build) if build.started_at is not None else now - build.buildable_at, pool) for build, pool in served]
    waits = sorted(seconds for seconds, _ in waited)
    lived = [(instance, seconds_of(world, instance, since)) for instance in instances]
    usd = sum(dollars_of(world, instance, since) for instance in instances)
    paid = sum(seconds * pool_of(world, instance).executors for instance, seconds in lived)
    busy = sum(run_seconds(world, build) for build, _ in builds)
    early = (i for i in instances if i.ended_at is not None and i.booted_at is not None and i.ended_at - i.booted_at < _EARLY_SECONDS)
    return Measures(
        jobs=len(builds),
        finished=sum(build.ended is Ended.FINISHED for build, _ in builds),
        killed=sum(is_lost(build) and not is_interrupted(build) for build, _ in builds),
        interrupted=sum(is_lost(build) and is_interrupted(build) for build, _ in builds),
        unservable=len(builds) - len(served),
        usd=round(usd, 2),
        wait_hours=round(sum(waits) / 3600, 3),
        total_usd=round(usd + sum(seconds / 3600 * pool.wait_usd_per_hour for seconds, pool in waited), 2),
        wait_mean_s=round(sum(waits) / len(waits), 1) if waits else 0.0,
        wait_p50_s=quantile(waits, 0.5),
        wait_p90_s=quantile(waits, 0.9),
        wait_p95_s=quantile(waits, 0.95),
        wait_p99_s=quantile(waits, 0.99),
        wait_max_s=quantile(waits, 1.0),
        late_share=round(sum(seconds > pool.boot_seconds for seconds, pool in waited) / len(waited), 4) if waited else 0.0,
        agent_hours=round(sum(seconds for _, seconds in lived) / 3600, 3),
        utilisation=round(busy / paid, 4) if paid else 0.0,
        usd_per_busy_hour=round(usd / busy * 3600, 4) if busy else 0.0,
        launches=sum(i.launched_at >= since for i in instances),
        early_terminations=sum(1 for _ in early),
        peak_spare=_peak_spare(world, [build for build, _ in served], instances),
    )


def _peak_spare(world: World, builds: Iterable[Build], instances: Iterable[Instance]) -> int:
    changes: list[tuple[float, int]] = []
    for instance in instances:
        executors = pool_of(world, instance).executors
        changes.append((instance.launched_at, executors))
        if instance.ended_at is not None:
            changes.append((instance.ended_at, -executors))
    for build in builds:
        changes.append((build.buildable_at, -1))
        if build.ended_at is not None:
            changes.append((build.ended_at, 1))
    spare = most = 0
    for _, change in sorted(changes):
        spare += change
        most = max(most, spare)
    return most
