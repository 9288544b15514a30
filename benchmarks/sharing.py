"""Two controllers over the same dear machines: each has its own, or an idle one goes where jobs wait."""

from collections.abc import Iterator, Mapping
from random import Random
from statistics import fmean
from typing import Any

from joblib import Parallel, delayed

from autoscaler.config import check
from autoscaler.domain.facts.fleet import Fleet, Share
from autoscaler_workbench.experiment.compare import FIXED
from autoscaler_workbench.experiment.experiment import OurPolicy
from autoscaler_workbench.fakes.world.world import World, build_world
from autoscaler_workbench.simulate.result import dollars_of, run_seconds, wait_of
from benchmarks import porterbox
from benchmarks.figures import Figures

_CONTROLLERS, _LABEL, _LOTS, _DAYS = ("graphics", "release"), "gpu", (1, 2), 5
_HOUR, _DAY = 3600.0, 86_400.0
MONDAY = 1_700_438_400.0  # midnight, UTC
_AGENTS = (1, 2, 4)
_SHARES = (Share.NONE, Share.ROTATE)  # cooperative: builds take cards by leases, and nobody else does (porterbox)


def measure() -> Iterator[Figures]:
    """Play a week of jobs of both, on ever more machines, exclusive and shared."""
    asked = [(agents, share, lot) for agents in _AGENTS for share in _SHARES for lot in _LOTS]
    played = Parallel(n_jobs=-1)(delayed(_play)(*what) for what in asked)
    results = dict(zip(asked, played, strict=True))
    yield Figures(
        "Machines that two controllers share",
        "Five days of graphics jobs on two controllers, in bursts at other hours, on machines that boot in five minutes; means of "
        f"{len(_LOTS)} random loads. Together they may have so many machines. Total: the bill, and waiting at $20 an hour.",
        ("machines at most", "", "jobs", "bill", "mean wait", "p95", "total", "launches", "machines' time used"),
        tuple(_row(agents, share, [results[agents, share, lot] for lot in _LOTS]) for agents in _AGENTS for share in _SHARES),
    )
    yield from porterbox.measure()


def _play(agents: int, share: Share, lot: int) -> Mapping[str, float]:
    fleet = _fleet(agents, share)
    world = build_world(fleet, start_at=MONDAY, seed=lot)
    builds: list[Any] = []
    for name in fleet.controllers:
        for at, seconds in _jobs(name, lot):
            world.timeline.at(at, lambda name=name, seconds=seconds: builds.append(world.controllers[name].submit("job", _LABEL, seconds)))  # type: ignore[misc]
    policy = OurPolicy(world, fleet, FIXED["looks_every_seconds"], None, lot)
    while world.timeline.now < MONDAY + _DAYS * _DAY or any(build.ended is None for build in builds):
        world.move_to(world.timeline.now + policy.tick_seconds)
        policy.tick()
    return _measured(world, builds)


def _measured(world: World, builds: list[Any]) -> Mapping[str, float]:
    waits = sorted(wait_of(build, world.timeline.now) for build in builds)
    instances = list(world.ec2.instances.values())
    paid = sum((i.ended_at or world.timeline.now) - i.launched_at for i in instances)
    return {
        "jobs": len(builds),
        "killed": sum(bool(build.killed_by) for build in builds),
        "usd": sum(dollars_of(world, instance, MONDAY) for instance in instances),
        "mean": fmean(waits),
        "p95": waits[int(0.95 * len(waits))],
        "waited": sum(waits),
        "launches": len(instances),
        "used": sum(run_seconds(world, build) for build in builds) / paid,
    }


def _fleet(agents: int, share: Share) -> Fleet:
    machine = {"executors": 1, "launch_template": "gpu", "instance_types": ["g4dn.8xlarge"], "max_agents": agents, "boot_seconds": 300.0}
    raw = {
        "fleet": "shared",
        "limits": {"max_agents": 100, "max_launches_per_hour": 100_000, "max_usd_per_hour": 100_000, "max_usd_per_month": 10_000_000},
        "controllers": {name: {"url": f"http://{name}.invalid/"} for name in _CONTROLLERS},
        "pools": {_LABEL: machine | {"share": str(share)}},
    }
    return check(raw, "a shared fleet").domain()


def _jobs(controller: str, lot: int) -> Iterator[tuple[float, float]]:
    """When jobs come, and how long they take: a burst of some four every two hours by day; one controller's day begins five hours later."""
    chance = Random(f"{controller}, {lot}")  # noqa: S311 - the same each time
    late = 5 * _HOUR * _CONTROLLERS.index(controller)
    for day in range(_DAYS):
        at = day * _DAY + 8 * _HOUR + late
        while at < day * _DAY + 18 * _HOUR + late:
            at += chance.expovariate(1 / (2 * _HOUR))
            for _ in range(chance.randint(2, 6)):
                yield MONDAY + at + chance.uniform(0, 600), chance.uniform(300, 2400)


def _row(agents: int, share: Share, results: list[Mapping[str, float]]) -> tuple[str, ...]:
    def mean(what: str) -> float:
        return fmean(result[what] for result in results)

    if mean("killed"):
        raise AssertionError(f"{mean('killed'):g} builds were killed")
    total = mean("usd") + 20.0 * mean("waited") / _HOUR
    told = f"{mean('jobs'):.0f}", f"${mean('usd'):,.0f}", f"{mean('mean'):.0f} s", f"{mean('p95'):.0f} s", f"${total:,.0f}"
    return str(agents), str(share), *told, f"{mean('launches'):.0f}", f"{mean('used'):.0%}"
