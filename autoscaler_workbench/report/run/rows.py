"""The data of the charts and tables as plain rows; a long run is thinned without inventing changes."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from math import ceil
from typing import Any

from autoscaler.domain.facts.fleet import Pool
from autoscaler_workbench.fakes.world.ec2.instance import Instance
from autoscaler_workbench.fakes.world.jenkins.builds import Build
from autoscaler_workbench.simulate.measures import Measures
from autoscaler_workbench.simulate.recording import AgentState, HeldSpan, Sample, StepTaken
from autoscaler_workbench.simulate.result import StepCurve, pool_of, rate_of, wait_of
from autoscaler_workbench.simulate.run import Run

# More instants than a screen has pixels add nothing but megabytes.
MOST_INSTANTS = 1500
MOST_DOTS = 4000
# More colours than this cannot be told apart; the cheapest pools share one.
MOST_COLOURS = 10
OTHERS = "other pools"
# What is left of a sum of prices when all of them were taken away again.
_NOTHING_USD = 1e-6
FLEET = "the whole fleet"

Row = dict[str, Any]


def thinned(samples: list[Sample]) -> list[Sample]:
    """Keep every k-th sample, so that no more than `MOST_INSTANTS` are left."""
    return samples[:: max(1, ceil(len(samples) / MOST_INSTANTS))]


def coloured(run: Run) -> dict[str, str]:
    """The name under which each pool has a colour: its own, or `OTHERS` for the cheapest of many. Unused pools have none."""
    rows = pool_rows(run)
    usd = {row["name"]: row["usd"] for row in list(filter(is_used, rows)) or rows}
    ordered = sorted(usd, key=lambda name: (-usd[name], name))
    if len(ordered) <= MOST_COLOURS:
        return {name: name for name in usd}
    return {name: (name if name in ordered[: MOST_COLOURS - 1] else OTHERS) for name in usd}


def is_used(row: Row) -> bool:
    """Tell whether a pool had jobs or agents."""
    return bool(row["jobs"] or row["launches"])


def queue_rows(run: Run, colours: dict[str, str]) -> list[Row]:
    """Jobs waiting, by instant and pool. A row stands where the number changed, and before it, so that lines are steps."""
    return list(_steps_of(run.recording.samples, lambda sample: _by_colour(sample.waiting, colours), _order(colours)))


def usd_rows(run: Run, colours: dict[str, str]) -> list[Row]:
    """Dollars an hour of what ran, by instant and pool."""
    spans: dict[str, list[tuple[float, float | None, float]]] = {name: [] for name in _order(colours)}
    for instance in run.world.ec2.instances.values():
        of_pool, rate = spans[colours[pool_of(run.world, instance).name]], rate_of(run.world, instance)
        of_pool += [(spell.began_at, spell.ended_at, rate) for spell in instance.spells]
    curves = {name: StepCurve.of(its_own) for name, its_own in spans.items()}

    def usd_at(sample: Sample) -> dict[str, float]:
        return {name: round(usd, 3) for name, curve in curves.items() if (usd := curve.at(sample.at)) > _NOTHING_USD}

    return list(_steps_of(run.recording.samples, usd_at, _order(colours)))


def agent_rows(run: Run, pool: str, order: list[str]) -> list[Row]:
    """Agents of one pool, by instant and state, the first of ``order`` at the bottom."""
    return list(_steps_of(run.recording.samples, lambda sample: {str(s): n for s, n in sample.agents.get(pool, {}).items()}, order))


def wait_rows(run: Run, colours: dict[str, str]) -> list[Row]:
    """One row a job that could run: when it became buildable, and how many minutes it waited, if need be until the end."""
    could_run = [build for build in run.replay.builds if build.buildable_at <= run.world.timeline.now]
    return [_wait_row(run, build, colours) for build in could_run[:: max(1, ceil(len(could_run) / MOST_DOTS))]]


def _wait_row(run: Run, build: Build, colours: dict[str, str]) -> Row:
    at, home = build.buildable_at, run.world.home_of(build)
    pool = colours.get(home.name, OTHERS) if home else OTHERS
    return {
        "at": int(at * 1000),
        "when": moment(at),
        "pool": pool,
        "job": build.job,
        "minutes": round(wait_of(build, run.world.timeline.now) / 60, 2),
    }


def step_rows(run: Run, colours: dict[str, str]) -> list[Row]:
    """One row a step, with its reason; bookkeeping steps are left out."""
    return [_step_row(taken, colours) for taken in run.recording.taken if taken.step != "forget"]


def held_rows(run: Run, colours: dict[str, str]) -> list[Row]:
    """One row a hold: what was wanted and not done, from when until when."""
    return [_held_row(held, colours) for held in run.recording.held]


def pool_rows(run: Run) -> list[Row]:
    """The measures of each pool, in the fleet file's order, over the builds that could run."""
    instances: dict[str, list[Instance]] = defaultdict(list)
    waited: dict[str, list[tuple[Build, Pool]]] = defaultdict(list)
    for instance in run.world.ec2.instances.values():
        instances[pool_of(run.world, instance).name].append(instance)
    for build in run.replay.builds:
        if build.buildable_at <= run.world.timeline.now and (home := run.world.home_of(build)):
            waited[home.name].append((build, home))
    return [_pool_row(run, pool, instances[pool.name], waited[pool.name]) for pool in run.world.fleet.pools.values()]


def _pool_row(run: Run, pool: Pool, instances: list[Instance], waited: list[tuple[Build, Pool]]) -> Row:
    waits = [(wait_of(build, run.world.timeline.now), home) for build, home in waited]
    most = max((_running(sample, pool.name) for sample in run.recording.samples), default=0)
    about = {"name": pool.name, "most_agents": most, "max_agents": pool.max_agents}
    return about | asdict(Measures.of(run.world, [build for build, _ in waited], waits, instances))


def _running(sample: Sample, pool: str) -> int:
    return sum(count for state, count in sample.agents.get(pool, {}).items() if state is not AgentState.STOPPED)


def moment(at: float) -> str:
    """An instant as people write it."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}"


def _by_colour(counts: dict[str, int], colours: dict[str, str]) -> dict[str, float]:
    merged: dict[str, float] = defaultdict(float)
    for pool, count in counts.items():
        merged[colours[pool]] += count
    return dict(merged)


def _order(colours: dict[str, str]) -> list[str]:
    return list(dict.fromkeys(colours.values()))


def _steps_of(samples: list[Sample], read: Callable[[Sample], dict[str, float]], order: list[str]) -> Iterator[Row]:
    """Rows of every series at every instant where any of them changed, zeros included: stacked areas need them all."""
    samples = thinned(samples)
    values = [read(sample) for sample in samples]
    series = [name for name in order if any(name in value for value in values)] or order[:1]
    for place, (sample, value) in enumerate(zip(samples, values, strict=True)):
        if place in {0, len(samples) - 1} or value != values[place - 1]:
            yield from _instant(sample.at, value, series)


def _instant(at: float, value: dict[str, float], series: Iterable[str]) -> Iterator[Row]:
    for rank, name in enumerate(series):
        yield {"at": int(at * 1000), "when": moment(at), "series": name, "rank": rank, "value": value.get(name, 0)}


def _step_row(taken: StepTaken, colours: dict[str, str]) -> Row:
    at = {"at": int(taken.at * 1000), "when": moment(taken.at), "colour": colours.get(taken.pool, FLEET)}
    return asdict(taken) | at


def _held_row(held: HeldSpan, colours: dict[str, str]) -> Row:
    span = {"at": int(held.first_at * 1000), "until": int((held.last_at + 60) * 1000)}
    when = f"{moment(held.first_at)} to {moment(held.last_at)[11:]}"
    shown = {"when": when, "step": "held", "count": 0, "node": "", "outcome": "done", "colour": colours.get(held.pool, FLEET)}
    return {"pool": held.pool, "reason": held.reason, "detail": held.detail} | span | shown
