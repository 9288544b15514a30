"""The measures of a run, counted in the world and not from what the autoscaler believes."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Self

from autoscaler.domain.facts.fleet import Pool
from autoscaler_workbench.fakes.world.ec2.instance import Instance
from autoscaler_workbench.fakes.world.jenkins.builds import Build, Ended
from autoscaler_workbench.fakes.world.world import World
from autoscaler_workbench.simulate.result import (
    beyond_floor,
    dollars_of,
    leaked_instances,
    leaked_nodes,
    on_seconds_of,
    pool_of,
    run_seconds,
    wait_of,
)

Waited = Sequence[tuple[float, Pool]]  # seconds, and the pool that prices them


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """Of some builds and the instances that they ran on. Waits are in seconds, from buildable to running.

    ``killed``: builds that died with an agent whose end somebody decided. ``interrupted``: EC2 took the machine back.
    ``unservable``: jobs that match no pool. ``utilisation``: the share of the paid executor time in which builds ran.
    ``total_usd``: the bill, and the price that the fleet file puts on the waiting.
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
    agent_hours: float
    utilisation: float
    launches: int

    @classmethod
    def of(
        cls, world: World, builds: Sequence[Build], waited: Waited, instances: Iterable[Instance], *, since: float = 0.0, **more: Any
    ) -> Self:
        """Measure. ``waited``: of the builds whose waiting counts. ``since``: what was paid for before does not count."""
        waits = sorted(seconds for seconds, _ in waited)
        lived = [(on_seconds_of(world, instance, since), pool_of(world, instance).executors) for instance in instances]
        usd = sum(dollars_of(world, instance, since) for instance in instances)
        paid = sum(seconds * executors for seconds, executors in lived)
        return cls(
            jobs=len(builds),
            finished=sum(build.ended is Ended.FINISHED for build in builds),
            killed=killed(builds),
            interrupted=interrupted(builds),
            unservable=sum(world.home_of(build) is None for build in builds),
            usd=round(usd, 2),
            wait_hours=round(sum(waits) / 3600, 3),
            total_usd=round(usd + sum(seconds / 3600 * pool.wait_usd_per_hour for seconds, pool in waited), 2),
            wait_mean_s=ratio(sum(waits), len(waits), 1),
            wait_p50_s=_quantile(waits, 0.5),
            wait_p90_s=_quantile(waits, 0.9),
            wait_p95_s=_quantile(waits, 0.95),
            wait_p99_s=_quantile(waits, 0.99),
            wait_max_s=_quantile(waits, 1.0),
            agent_hours=round(sum(seconds for seconds, _ in lived) / 3600, 3),
            utilisation=ratio(sum(run_seconds(world, build) for build in builds), paid),
            launches=sum(instance.launched_at >= since for instance in instances),
            **more,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMeasures(Measures):
    """Of a whole run. ``never_ran``: jobs that a pool serves and that still wait; they count in the waits."""

    never_ran: int
    terminations: int
    leaked_instances: int
    leaked_nodes: int


def measure(world: World, builds: Iterable[Build], *, over: bool = True) -> RunMeasures:
    """Measure a run now. Waits: of every build that a pool serves; one that never ran has waited until now.

    ``over``: no agent is needed any more, so those beyond the pools' minimum are left over; before that they are in use.
    """
    builds, instances, now = list(builds), list(world.ec2.instances.values()), world.timeline.now
    served = [(build, home) for build in builds if build.buildable_at <= now and (home := world.home_of(build))]
    waited = [(wait_of(build, now), home) for build, home in served]
    needed = {home.name for build, home in served if build.ended is None}
    return RunMeasures.of(
        world,
        builds,
        waited,
        instances,
        never_ran=sum(build.started_at is None for build, _ in served),
        terminations=sum(not instance.alive() for instance in instances),
        leaked_instances=len({i.id for i in (*leaked_instances(world), *(_unneeded(world, needed) if over else ()))}),
        leaked_nodes=len(leaked_nodes(world)),
    )


def _unneeded(world: World, needed: Collection[str]) -> Iterable[Instance]:
    """The instances beyond the minimum of their pool, in pools that no build needs."""
    return (instance for instance in beyond_floor(world) if pool_of(world, instance).name not in needed)


def killed(builds: Iterable[Build]) -> int:
    """How many builds died with an agent whose end somebody decided."""
    return sum(not _is_interrupted(build) for build in builds if _is_lost(build))


def interrupted(builds: Iterable[Build]) -> int:
    """How many builds died with an agent that EC2 took back."""
    return sum(_is_interrupted(build) for build in builds if _is_lost(build))


def ratio(part: float, whole: float, digits: int = 4) -> float:
    """One divided by the other; 0 of nothing."""
    return round(part / whole, digits) if whole else 0.0


def _is_lost(build: Build) -> bool:
    """Tell whether a build did not come to its own end."""
    return build.ended is Ended.KILLED or (build.ended is None and bool(build.killed_by))


def _is_interrupted(build: Build) -> bool:
    return "was interrupted" in build.killed_by


def _quantile(ordered: list[float], share: float) -> float:
    """Nearest rank of an ordered list; 0 of an empty one."""
    return round(ordered[max(0, ceil(share * len(ordered)) - 1)], 1) if ordered else 0.0
