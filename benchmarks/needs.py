"""Pools sized by what jobs need: agent hours, waits and memory that is promised twice, on a made-up load whose needs are known."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import exp
from random import Random
from statistics import fmean
from typing import Any

from joblib import Parallel, delayed

from autoscaler.config import FleetSettings, check
from autoscaler.config.prices import shapes
from autoscaler_workbench.experiment.sizing import JobNeed, Part, Sizing, size_pool, split_pool
from autoscaler_workbench.fakes.world.jenkins.builds import Build
from autoscaler_workbench.simulate.run import in_memory, prepare
from autoscaler_workbench.simulate.traces import Row, Trace
from benchmarks.figures import Figures, seconds

_HOURS, _HOUR, _DAY = 48.0, 3600.0, 86_400.0
_MONDAY = 1_700_438_400.0  # midnight, UTC
_SEEDS = (1, 2, 3)
_MACHINE = "m5.4xlarge"
_POOL = "cpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """What a made-up job takes: peak memory, processors, and how often it comes and how long it takes."""

    memory_gib: float
    cores: float
    an_hour: float  # in office hours; a tenth of it at night
    seconds: float


_JOBS: Mapping[str, _Job] = {
    **{f"lint-{n}": _Job(memory_gib=1.5 + n / 2, cores=1.0, an_hour=30.0, seconds=300.0) for n in range(4)},
    **{f"test-{n}": _Job(memory_gib=6.0 + n, cores=2.0, an_hour=8.0, seconds=900.0) for n in range(4)},
    **{f"link-{n}": _Job(memory_gib=24.0 + 6 * n, cores=6.0, an_hour=2.0, seconds=1500.0) for n in range(2)},
}


@dataclass(frozen=True, slots=True)
class _Played:
    agent_hours: float
    usd: float
    wait_p95: float
    promised_twice: float  # share of agent hours in which builds took more memory than the machine has
    unfinished: int


def measure() -> Iterator[Figures]:
    """Play the load with executors that never promise memory twice, with as many as usual, and with what its needs propose."""
    sizing, same, parts = _proposed()
    fleets = {
        f"1 executor on {_MACHINE}: never too much": _fleet({_POOL: (_MACHINE, 1)}),
        f"4 executors on {_MACHINE}": _fleet({_POOL: (_MACHINE, 4)}),
        f"16 executors on {_MACHINE}": _fleet({_POOL: (_MACHINE, 16)}),
        f"weights: {sizing.executors} executors on {sizing.instance_type}": _fleet(
            {_POOL: (sizing.instance_type, sizing.executors)}, sizing.weights
        ),
        f"pools by need, same machine: {', '.join(str(part.executors) for part in same)} executors": _fleet(
            {_name(part): (part.instance_type, part.executors) for part in same}
        ),
        f"pools by need: {', '.join(f'{part.executors} on {part.instance_type}' for part in parts)}": _fleet(
            {_name(part): (part.instance_type, part.executors) for part in parts}
        ),
    }
    asked = [(name, seed) for name in fleets for seed in _SEEDS]
    results = Parallel(n_jobs=-1)(delayed(_play)(fleets[name], seed) for name, seed in asked)
    found: dict[str, list[_Played]] = {}
    for (name, _), played in zip(asked, results, strict=True):
        found.setdefault(name, []).append(played)
    yield Figures(
        "Pools sized by what jobs need",
        f"Two made-up days of ten jobs whose needs are known (1.5 to 30 GiB, 1 to 6 cores, 5 to 25 minutes), means of {len(_SEEDS)} seeds. "
        "Too much: the share of agent hours in which the builds on a machine needed more memory than it has. The last three are what is "
        "proposed for the first by its jobs' needs; with pools by need, jobs ask for the label of theirs.",
        ("fleet", "agent hours", "bill", "wait p95", "too much", "unfinished"),
        tuple((name, *_row(rows)) for name, rows in found.items()),
    )


def _row(rows: list[_Played]) -> Iterator[str]:
    yield f"{fmean(row.agent_hours for row in rows):.0f}"
    yield f"${fmean(row.usd for row in rows):.0f}"
    yield seconds(fmean(row.wait_p95 for row in rows))
    yield f"{100 * fmean(row.promised_twice for row in rows):.1f} %"
    yield str(sum(row.unfinished for row in rows))


def _proposed() -> tuple[Sizing, list[Part], list[Part]]:
    hours = {name: job.an_hour * job.seconds for name, job in _JOBS.items()}
    needs = [JobNeed(job=name, pool=_POOL, memory_gib=job.memory_gib, cores=job.cores, hours=hours[name]) for name, job in _JOBS.items()]
    pool = _fleet({_POOL: (_MACHINE, 1)}).pools[_POOL]
    sizing = size_pool(_POOL, pool, needs)
    if sizing is None:
        raise ValueError("no machine fits the made-up jobs")
    return sizing, split_pool(_POOL, pool, needs, same_machine=True), split_pool(_POOL, pool, needs)


def _name(part: Part) -> str:
    return f"{part.jobs[0]}_to_{part.jobs[-1]}"


def _jobs_of(pool: str) -> list[str]:
    """Name the jobs between those that a pool is named after: what needs less comes first."""
    names, (first, _, last) = list(_JOBS), pool.partition("_to_")
    return names[names.index(first) : names.index(last) + 1] if last else []


def _fleet(machines: Mapping[str, tuple[str, int]], weights: Mapping[str, int] | None = None) -> FleetSettings:
    """A pool for each name: its instance type, and the executors of one machine."""
    pool = {"launch_template": "t", "platform": "linux", "max_agents": 200}
    raw: dict[str, Any] = {
        "fleet": "f",
        "limits": {"max_agents": 300, "max_launches_per_hour": 1000, "max_usd_per_hour": 1e4, "max_usd_per_month": 1e6},
        "controllers": {"main": {"url": "http://main/"}},
        "pools": {name: pool | {"instance_types": [kind], "executors": executors} for name, (kind, executors) in machines.items()},
        "weights": dict(weights or {}),
    }
    return check(raw, "needs")


def _trace(seed: int, labels: Mapping[str, str]) -> Trace:
    """Draw the load. ``labels``: that jobs ask for; of those that are not named that of the one pool."""
    chance = Random(f"needs, {seed}")  # noqa: S311 - the same each time
    rows = tuple(sorted(_rows(chance, labels), key=lambda row: row.queued_at))
    return Trace(name="needs", start_at=_MONDAY, judged_at=_MONDAY, rows=rows, dropped=0)


def _rows(chance: Random, labels: Mapping[str, str]) -> Iterator[Row]:
    for name, job in _JOBS.items():
        at = 0.0
        while (at := at + chance.expovariate(job.an_hour) * _HOUR) < _HOURS * _HOUR:
            if 9 <= at % _DAY / _HOUR < 18 or chance.random() < 0.1:
                took = round(job.seconds * exp(chance.gauss(0, 0.3)), 1)
                label = labels.get(name, _POOL)
                yield Row(queued_at=_MONDAY + at, duration_seconds=took, label=label, job=name, run="", stage="", depends_on="")


def _play(fleet: FleetSettings, seed: int) -> _Played:
    labels = {job: name for name in fleet.pools for job in _jobs_of(name)}
    run = prepare(_trace(seed, labels), fleet.domain(), hours=_HOURS, seed=seed)
    result = run.result(list(in_memory(run))[-1])
    memory = {name: shapes()[pool.offerings[0].instance_type]["memory_gib"] for name, pool in run.world.fleet.pools.items()}
    too_much = sum(_seconds_beyond(builds, memory[builds[0].label or ""]) for builds in _by_node(run.replay.builds).values())
    return _Played(
        agent_hours=result["agent_hours"],
        usd=result["usd"],
        wait_p95=result["wait_p95_s"],
        promised_twice=too_much / _HOUR / result["agent_hours"],
        unfinished=result["jobs"] - result["finished"],
    )


def _by_node(builds: list[Build]) -> dict[str, list[Build]]:
    found: dict[str, list[Build]] = {}
    for build in builds:
        if build.node and build.started_at is not None and build.ended_at is not None:
            found.setdefault(build.node, []).append(build)
    return found


def _seconds_beyond(builds: list[Build], memory_gib: float) -> float:
    """Add up for how long the builds of one machine together needed more memory than it has."""
    changes = [(build.started_at or 0.0, _JOBS[build.job].memory_gib) for build in builds]
    changes += [(build.ended_at or 0.0, -_JOBS[build.job].memory_gib) for build in builds]
    taken, since, beyond = 0.0, 0.0, 0.0
    for at, more in sorted(changes):
        beyond += at - since if taken > memory_gib else 0.0
        taken, since = taken + more, at
    return beyond
