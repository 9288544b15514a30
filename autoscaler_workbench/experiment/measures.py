"""The measures of an experiment, in all and by pool: counted in the world, not from what the policy believes."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from autoscaler_workbench.fakes.world.ec2.instance import Instance
from autoscaler_workbench.fakes.world.jenkins.builds import Build
from autoscaler_workbench.fakes.world.world import World
from autoscaler_workbench.simulate.measures import Measures, killed, ratio
from autoscaler_workbench.simulate.replay import Replay
from autoscaler_workbench.simulate.result import StepCurve, dollars_of, pool_of, run_seconds, wait_of

_EARLY_SECONDS = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentMeasures(Measures):
    """Of a run or of one pool of it. A job that never ran has waited until now.

    ``late_share``: of the jobs, those that waited longer than their pool's boot. ``early_terminations``: within five minutes of the
    boot's end. ``peak_spare``: the most paid executors at once beyond what ran or waited.
    """

    late_share: float
    usd_per_busy_hour: float
    early_terminations: int
    peak_spare: int


def measure_run(world: World, replay: Replay, since: float) -> dict[str, Any]:
    """Measure a run from an instant on, in all and under ``pools`` by pool; ``jobs`` includes jobs that never became due."""
    paid = [i for i in world.ec2.instances.values() if i.ended_at is None or i.ended_at > since]
    # Not even in the lead-in may a build be killed.
    whole = asdict(_measure(world, replay.judged, paid, since)) | {"jobs": replay.judged_rows, "killed": killed(replay.builds)}
    return whole | {"pools": dict(_by_pool(world, replay.judged, paid, since))}


def _by_pool(world: World, builds: Sequence[Build], paid: Sequence[Instance], since: float) -> Iterator[tuple[str, dict[str, Any]]]:
    instances: dict[str, list[Instance]] = defaultdict(list)
    for instance in paid:
        instances[pool_of(world, instance).name].append(instance)
    served: dict[str, list[Build]] = defaultdict(list)
    for build in builds:
        if home := world.home_of(build):
            served[home.name].append(build)
    for name in world.fleet.pools:
        if name in served or name in instances:
            yield name, asdict(_measure(world, served[name], instances[name], since))


def _measure(world: World, builds: Sequence[Build], instances: Sequence[Instance], since: float) -> ExperimentMeasures:
    served = [(build, home) for build in builds if (home := world.home_of(build))]
    waited = [(wait_of(build, world.timeline.now), home) for build, home in served]
    usd, busy = sum(dollars_of(world, i, since) for i in instances), sum(run_seconds(world, build) for build in builds)
    return ExperimentMeasures.of(
        world,
        builds,
        waited,
        instances,
        since=since,
        late_share=ratio(sum(seconds > pool.boot_seconds for seconds, pool in waited), len(waited)),
        usd_per_busy_hour=ratio(usd * 3600, busy),
        early_terminations=sum(i.ended_at - i.booted_at < _EARLY_SECONDS for i in instances if i.ended_at and i.booted_at),
        peak_spare=_peak_spare(world, [build for build, _ in served], instances),
    )


def _peak_spare(world: World, builds: Iterable[Build], instances: Iterable[Instance]) -> int:
    paid = [(i.launched_at, i.ended_at, pool_of(world, i).executors) for i in instances]
    asked = [(build.buildable_at, build.ended_at, -1) for build in builds]
    return int(max(0, *StepCurve.of([*paid, *asked]).counts, 0))
