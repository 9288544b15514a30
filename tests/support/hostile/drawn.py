"""A world before it begins: its fleet, its jobs and when they come, drawn from a seed."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from random import Random

from autoscaler.domain.facts.fleet import Fleet, Market, Pool, WarmPool
from autoscaler.domain.facts.job_settings import JobWeights, Source
from autoscaler.domain.labels import parse
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from support.builders import a_fleet, a_pool, an_offering
from support.hostile.prepared import IN_ORDER, PREPARES
from support.worlds import START

MINUTE = 60.0
SETTLES_SECONDS = 3 * MINUTE
# After the calm has begun, jobs come for so long.
LATE_SECONDS = 30 * MINUTE
# So many boots may time out one after another before a job begins.
BOUND_BOOTS = 4
# Of what a pool could carry within the bound after the chaos. What is more would prove nothing by waiting.
_CARRIED = 0.4
# Agents that persons keep, or that never let go: a pool can do without so many.
_LOST_PLACES = 3
_MAX_IDLE_SECONDS = 1800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job, and what it asks for. ``weight``: executors that each of its builds takes; ``by_plugin``: Jenkins itself counts so."""

    name: str
    controller: str
    label: str
    seconds: float
    kind: Kind
    weight: int = 1
    by_plugin: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """Some builds of a job that are queued at once."""

    at: float
    job: Job
    seconds: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """What a seed gives. The chaos lasts until ``calm_at``; ``bound``: of waiting, once it is over."""

    seed: int
    fleet: Fleet
    jobs: tuple[Job, ...]
    arrivals: tuple[Arrival, ...]
    calm_at: float

    @property
    def begin_at(self) -> float:
        return START + SETTLES_SECONDS

    @property
    def bound(self) -> float:
        return BOUND_BOOTS * max(pool.boot_timeout_seconds for pool in self.fleet.pools.values()) + 15 * MINUTE

    @property
    def end_at(self) -> float:
        return self.calm_at + self.bound + LATE_SECONDS


def draw(seed: int, switches: Collection[str] = ()) -> Drawn:
    """Draw a world. ``switches``: some of them need a fleet with more in it; without these a seed always gives the same."""
    chance = Random(f"{seed}/fleet")
    fleet = _fleet(chance)
    for switch in IN_ORDER:
        if switch in switches:
            fleet = PREPARES[switch](Random(f"{seed}/{switch}/fleet"), fleet)
    jobs = tuple(_jobs(Random(f"{seed}/jobs"), fleet))
    heavy = (job for job in jobs if job.weight > 1)
    weights = JobWeights(by_pattern=tuple((job.name, Source.PLUGIN if job.by_plugin else job.weight) for job in heavy))
    calm_at = START + SETTLES_SECONDS + chance.choice([90, 120, 150, 180]) * MINUTE
    drawn = Drawn(seed=seed, fleet=replace(fleet, weights=weights), jobs=jobs, arrivals=(), calm_at=calm_at)
    return replace(drawn, arrivals=tuple(_carried(drawn, _arrivals(Random(f"{seed}/arrivals"), drawn))))


def pools_for(fleet: Fleet, controller: str, label: str) -> list[Pool]:
    """The pools whose fresh agents satisfy a label expression. Of hosts there are no fresh ones."""
    expression = parse(label)
    pools = fleet.launched.pools_of(controller)
    return [pool for pool in pools if expression.matches(pool.labels | {fleet.ownership_label})]


def _fleet(chance: Random) -> Fleet:
    controllers = ("main", "other")[: chance.choice([1, 1, 2])]
    names = chance.sample(["cpu", "gpu", "arm", "big"], chance.choice([1, 2, 2, 3, 4]))
    pools = [_pool(chance, name, controllers) for name in names]
    served = {controller for pool in pools for controller in pool.controllers}
    pools[0] = pools[0] if served == set(controllers) else replace(pools[0], controllers=controllers)
    most = sum(pool.max_agents for pool in pools)
    return a_fleet(*pools, max_agents=chance.choice([most, max(8, most - 4)]), max_launches_per_hour=100)


def _pool(chance: Random, name: str, controllers: tuple[str, ...]) -> Pool:
    boot = chance.choice([60.0, 120.0, 200.0])
    warm = WarmPool(min_agents=0, max_agents=3, max_age_seconds=24 * 3600.0) if chance.random() < 0.5 else None
    return a_pool(
        name,
        labels=frozenset({name, *chance.sample(["linux", "docker"], chance.choice([0, 1, 1, 2]))}),
        controllers=controllers if chance.random() < 0.5 else controllers[:1],
        executors=chance.choice([1, 1, 2, 4]),
        offerings=tuple(_offerings(chance, name)),
        max_agents=chance.choice([6, 8, 10]),
        queue_maturity_seconds=chance.choice([0.0, 30.0, 60.0]),
        max_wait_seconds=chance.choice([600.0, 900.0, 1800.0]),
        boot_seconds=boot,
        boot_timeout_seconds=chance.choice([each for each in (300.0, 600.0, 900.0) if each >= 2.5 * boot]),
        max_idle_seconds=_MAX_IDLE_SECONDS,
        idle_seconds=chance.choice([None, 300.0, 900.0, 900.0]),
        warm_pool=warm,
    )


def _offerings(chance: Random, name: str) -> Iterator:
    """One type, or more; spot before on-demand."""
    disk = {"volume_usd_per_hour": 0.02}
    if chance.random() < 0.3:
        yield an_offering(f"c5.{name}", market=Market.SPOT, usd_per_hour=0.5, most_usd_per_hour=1.5, **disk)
    for family in chance.sample(["c5", "m5", "r5"], chance.choice([1, 1, 2, 3])):
        yield an_offering(f"{family}.{name}", usd_per_hour=1.5, **disk)


def _jobs(chance: Random, fleet: Fleet) -> Iterator[Job]:
    for number in range(chance.randint(3, 8)):
        pool = chance.choice(list(fleet.launched.pools.values()))
        label = chance.choice([pool.name, pool.name, *sorted(pool.labels), " && ".join(sorted(pool.labels)), f"{pool.name} && !windows"])
        label = pool.name if fleet.ignores(label) else label
        yield Job(
            name=f"team-{chance.choice('ab')}/job-{number}",
            controller=chance.choice(pool.controllers),
            label=label,
            seconds=chance.choice([60.0, 120.0, 300.0, 600.0, 1200.0]) * chance.uniform(0.8, 1.2),
            kind=chance.choice(list(Kind)),
            weight=min(2, pool.executors) if chance.random() < 0.15 and pool.name in label.split() else 1,
            by_plugin=chance.random() < 0.5,
        )


def _arrivals(chance: Random, drawn: Drawn) -> Iterator[Arrival]:
    chaos = drawn.calm_at - drawn.begin_at
    times = [drawn.begin_at + chaos * chance.random() for _ in range(chance.randint(12, 40))]
    times += [drawn.calm_at + LATE_SECONDS * chance.random() for _ in range(chance.randint(2, 6))]
    often = chance.choice(drawn.jobs)
    for at in sorted(times):
        job = often if chance.random() < 0.4 else chance.choice(drawn.jobs)
        count = chance.choice([1, 1, 1, 2, 3, 6])
        yield Arrival(at=at, job=job, seconds=tuple(job.seconds * chance.uniform(0.8, 1.25) for _ in range(count)))


def _carried(drawn: Drawn, arrivals: Iterable[Arrival]) -> Iterator[Arrival]:
    """Leave out what the limits could not carry if all of it waited until the calm: its waiting would prove nothing."""
    work: dict[str, float] = defaultdict(float)
    for arrival in arrivals:
        pool = pools_for(drawn.fleet, arrival.job.controller, arrival.job.label)[0]
        seconds = sum(arrival.seconds) * arrival.job.weight
        room = (pool.max_agents - _LOST_PLACES) * pool.executors * drawn.bound * _CARRIED / len(pool.controllers)
        if work[pool.name] + seconds <= room:
            work[pool.name] += seconds
            yield arrival
