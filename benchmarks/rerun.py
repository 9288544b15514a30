"""A month in which EC2 takes spot instances back: what is lost, and what running it again costs."""

from collections.abc import Iterator, Mapping
from math import exp
from random import Random
from statistics import fmean
from typing import Any

from joblib import Parallel, delayed

from autoscaler.config import check
from autoscaler.domain.facts.fleet import Fleet
from autoscaler_workbench.fakes.http_fakes.jenkins.jobs import Job
from autoscaler_workbench.fakes.world.jenkins.builds import Build, Ended, Kind
from autoscaler_workbench.fakes.world.physics import Physics
from autoscaler_workbench.fakes.world.world import World, build_world
from autoscaler_workbench.simulate.drive import MINUTE, InProcess, Progress, tick_once
from autoscaler_workbench.simulate.result import dollars, wait_of
from benchmarks.figures import Figures

_DAYS, _HOUR, _DAY = 30, 3600.0, 86_400.0
_MONDAY = 1_700_438_400.0  # midnight, UTC
_RUN_ID = "AUTOSCALER_RUN_ID"
_JOBS, _AN_HOUR, _MEDIAN = 30, 12.0, 2400.0
_AGAIN, _ONCE_MORE = ({"lost": {"times": times, "second": "on-demand"}} for times in (2, 3))
_RUNS: tuple[tuple[str, str, Any], ...] = (
    ("spot", "spot-then-on-demand", "off"),
    ("spot", "spot-then-on-demand", _AGAIN),
    ("spot", "spot-then-on-demand", _ONCE_MORE),
    ("on-demand", "on-demand", "off"),
)


def measure() -> Iterator[Figures]:
    """Play the same month in each way."""
    played = Parallel(n_jobs=-1)(delayed(_play)(market, rerun) for _, market, rerun in _RUNS)
    yield Figures(
        "Lost builds that run again",
        f"{_DAYS} days of {_JOBS} jobs, half of them shorter than {_MEDIAN / 60:.0f} minutes, on instances of which EC2 takes 5 % back an "
        "hour where they are spot. Lost: builds asked for of which none came to its end. Wait: for an executor, of all builds; until its "
        "end: from the queue to the end of the build that came to one, whatever was lost before.",
        ("instances", "rerun", "asked for", "interrupted", "run again", "left", "lost", "bill", "mean wait", "until its end, mean"),
        tuple(_row(name, rerun, result) for (name, _, rerun), result in zip(_RUNS, played, strict=True)),
    )


def _play(market: str, rerun: Any) -> Mapping[str, float]:
    fleet = _fleet(market, rerun)
    world = build_world(fleet, start_at=_MONDAY, seed=1, physics=Physics(interruptions_per_hour=0.05))
    functions = InProcess(world, fleet)
    asked = _arrivals(world, functions)
    progress = Progress()
    while world.timeline.now < _MONDAY + _DAYS * _DAY or any(build.ended is None for build in world.controllers["main"].builds):
        world.move_to(world.timeline.now + MINUTE)
        tick_once(functions, progress)
    if progress.errors:
        raise AssertionError(f"{progress.errors} errors: {progress.error_texts[:3]}")
    return _measured(world, functions, asked)


def _arrivals(world: World, functions: InProcess) -> list[Build]:
    """Put the month on the time-line, twice as much by day as by night; return the builds, as they come."""
    chance, jobs, asked = Random(1), functions.apis["main"].jobs, list[Build]()  # noqa: S311 - the same each time
    for number in range(_JOBS):
        jobs.jobs[f"job-{number}"] = Job(Kind.FREESTYLE, "ci", _MEDIAN * exp(chance.gauss(0, 0.8)), declares={_RUN_ID: ""})
    at = 0.0
    while (at := at + chance.expovariate(_AN_HOUR) * _HOUR) < _DAYS * _DAY:
        name, run_id = f"job-{chance.randrange(_JOBS)}", f"asked at {at:.3f}"
        if chance.random() < (1.0 if 8 <= at % _DAY / _HOUR < 20 else 0.5):
            world.timeline.at(_MONDAY + at, lambda name=name, run_id=run_id: asked.append(jobs.build(name, {_RUN_ID: run_id}, "them")))  # type: ignore[misc]
    return asked


def _measured(world: World, functions: InProcess, asked: list[Build]) -> Mapping[str, float]:
    builds = world.controllers["main"].builds
    told = [(build, str(build.started_with.parameters[0][1])) for build in builds]
    again = {run_id.partition("@")[0]: build for build, run_id in told if "@" in run_id}

    def last(build: Build) -> Build:
        following = again.get(build.run_path.rstrip("/"))
        return build if following is None else last(following)

    ends = [(build, last(build)) for build in asked]
    done = [(first, end) for first, end in ends if end.ended is Ended.FINISHED]
    states = [str(one.state) for one in functions.state.reruns.values()]
    return {
        "asked": len(asked),
        "interrupted": sum(build.ended is Ended.KILLED for build in builds),
        "again": states.count("started"),
        "left": states.count("left"),
        "lost": len(ends) - len(done),
        "usd": dollars(world),
        "wait": fmean(wait_of(build, world.timeline.now) for build in builds),
        "took": fmean((end.ended_at or 0.0) - first.queued_at for first, end in done),
    }


def _fleet(market: str, rerun: Any) -> Fleet:
    pool = {
        "executors": 2,
        "launch_template": "t",
        "instance_types": ["m7i.2xlarge", "m6i.2xlarge"],
        "subnets": ["subnet-0a1b2c3d4e5f60711", "subnet-0a1b2c3d4e5f60712"],
        "max_agents": 30,
        "boot_seconds": 120.0,
        "market": market,
        "rerun": rerun,
    }
    raw = {
        "fleet": "month",
        "limits": {"max_agents": 100, "max_launches_per_hour": 1000, "max_usd_per_hour": 1000, "max_usd_per_month": 1_000_000},
        "controllers": {"main": {"url": "http://main.invalid/"}},
        "pools": {"ci": pool},
    }
    return check(raw, "a month's fleet").domain()


def _row(instances: str, rerun: Any, result: Mapping[str, float]) -> tuple[str, ...]:
    counts = (f"{result[name]:,.0f}" for name in ("asked", "interrupted", "again", "left", "lost"))
    told = "off" if rerun == "off" else f"{rerun['lost']['times']} times, then on-demand"
    return instances, told, *counts, f"${result['usd']:,.0f}", f"{result['wait']:.0f} s", f"{result['took'] / 60:.1f} min"
