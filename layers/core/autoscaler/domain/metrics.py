"""What is published of a snapshot and of a pass: data points, for one pool, one controller, or the fleet."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from autoscaler.domain.agents import Agent, Phase
from autoscaler.domain.breakers import is_tripped
from autoscaler.domain.giveup import is_drain_overdue
from autoscaler.domain.limits import living_records
from autoscaler.domain.model import Fleet
from autoscaler.domain.pools import PoolView
from autoscaler.domain.retire import starved_by_pool
from autoscaler.domain.room import Room
from autoscaler.domain.situation import Situation
from autoscaler.domain.snapshot import Build
from autoscaler.domain.supply import build_remaining_seconds

COUNT, SECONDS, PERCENT, NONE = "Count", "Seconds", "Percent", "None"
# Of these the fleet's value is the worst of its pools; of all others it is their sum, or all their values.
_WORST = frozenset({"QueueWait", "AgentsLimitUsedPercent"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Datum:
    """One metric at one instant: one value, or the values of a distribution."""

    name: str
    values: tuple[float, ...]
    unit: str
    dimensions: tuple[tuple[str, str], ...]


def measure(situation: Situation, job_waits: Mapping[tuple[str, str], tuple[float, ...]]) -> list[Datum]:
    """Describe queue, executors, agents and running builds; ``job_waits`` by controller and pool, once per job."""
    of_pools: list[Datum] = []
    for pool in situation.pools.values():
        of_pools += _pool_data(situation, pool, job_waits.get(pool.key, ()))
    nothing = [_one(name, 0, COUNT, ()) for name in _COUNTED]
    data = [*of_pools, *_fleet_totals(situation.fleet, [*nothing, *of_pools]), *_fleet_data(situation)]
    for view in situation.views():
        dimensions = (("Fleet", situation.fleet.name), ("Controller", view.name))
        data.append(_one("ControllerResponseSeconds", view.response_seconds, SECONDS, dimensions))
        if view.complete:
            data.append(_one("QueueLength", len(view.items), COUNT, dimensions))
            data.append(_one("QueueUnservable", len(situation.demands[view.name].unmet), COUNT, dimensions))
    for name in ("QueueLength", "QueueUnservable"):
        values = [d.values[0] for d in data if d.name == name]
        if values:
            data.append(_one(name, sum(values), COUNT, (("Fleet", situation.fleet.name),)))
    return [datum for datum in data if datum.values]


def heartbeat(fleet: str, function: str) -> Datum:
    """Say that a pass of this function was completed."""
    return _one("Heartbeat", 1, COUNT, (("Fleet", fleet), ("Function", function)))


def scaling(fleet: str, counts: Mapping[str, int]) -> list[Datum]:
    """Describe what a pass did: Launches, LaunchesHeld, Terminations, LeaseHeld."""
    return [_one(name, count, COUNT, (("Fleet", fleet),)) for name, count in counts.items()]


def _pool_data(situation: Situation, pool: PoolView, job_waits: tuple[float, ...]) -> Iterator[Datum]:
    controller, name = pool.key
    view = situation.snapshot.controllers[controller]
    dimensions = (("Fleet", situation.fleet.name), ("Controller", controller), ("Pool", name))
    yield Datum(name="JobWaitSeconds", values=job_waits, unit=SECONDS, dimensions=dimensions)
    if not view.complete:
        return
    wants = [w for w in situation.demands[controller].wants if name in {p.name for p in w.pools}]
    waits = tuple(want.item.waiting_seconds for want in wants)
    ready = [agent for agent in pool.agents if agent.phase is Phase.READY]
    total = sum(agent.node.executors for agent in ready if agent.node)
    busy = sum(agent.busy_executors for agent in pool.agents)
    free = total - sum(agent.busy_executors for agent in ready)
    yield _one("QueueStarved", starved_by_pool(situation, controller).get(name, 0), COUNT, dimensions)
    yield _one("ExecutorsTotal", total, COUNT, dimensions)
    yield _one("AgentsOnline", len(ready), COUNT, dimensions)
    yield Datum(name="QueueWait", values=waits, unit=SECONDS, dimensions=dimensions)
    if not pool.agents:
        # Each metric costs money by the hour it is sent in; an empty pool has told all there is to tell.
        return
    yield _one("ExecutorsBusy", busy, COUNT, dimensions)
    yield _one("ExecutorsFree", free, COUNT, dimensions)
    for metric, phases in _AGENT_METRICS.items():
        yield _one(metric, sum(agent.phase in phases for agent in pool.agents), COUNT, dimensions)
    since = situation.snapshot.learned[controller].seen_at
    records = [agent.record for agent in pool.agents]
    boots = tuple(r.registered_at - r.launched_at for r in records if since and r.registered_at and r.registered_at > since)
    yield Datum(name="BootSeconds", values=boots, unit=SECONDS, dimensions=dimensions)
    yield from _build_data(situation, pool, dimensions)


_AGENT_METRICS = {
    "AgentsBooting": {Phase.REQUESTED, Phase.CONNECTING},
    "AgentsRequested": {Phase.REQUESTED},
    "AgentsDraining": {Phase.RETIRING, Phase.DRAINING},
    "AgentsOffline": {Phase.SET_ASIDE, Phase.LOST},
}


def _build_data(situation: Situation, pool: PoolView, dimensions: tuple[tuple[str, str], ...]) -> Iterator[Datum]:
    controller, name = pool.key
    learned = situation.snapshot.learned[controller]
    remaining: list[float] = []
    percent: list[float] = []
    overdue = 0
    for build in _builds(pool.agents):
        left = build_remaining_seconds(build, name, learned, situation.now, frozenset())
        if left == float("inf"):
            overdue += 1
            continue
        seen = learned.running.get(build.key)
        elapsed = build.elapsed_seconds if build.elapsed_seconds is not None else situation.now - (seen.since_at if seen else situation.now)
        remaining.append(left)
        percent.append(100.0 * left / (left + elapsed) if left + elapsed > 0 else 0.0)
    yield Datum(name="RemainingSeconds", values=tuple(remaining), unit=SECONDS, dimensions=dimensions)
    yield Datum(name="RemainingPercent", values=tuple(percent), unit=PERCENT, dimensions=dimensions)
    yield _one("BuildsOverdue", overdue, COUNT, dimensions)


_COUNTED = (
    *("QueueStarved", "ExecutorsTotal", "ExecutorsBusy", "ExecutorsFree", "BuildsOverdue", "AgentsOnline"),
    *_AGENT_METRICS,
)


def _fleet_data(situation: Situation) -> Iterator[Datum]:
    fleet, limits = situation.fleet, situation.fleet.limits
    room = Room(situation)
    dimensions = (("Fleet", fleet.name),)
    records = living_records(situation.snapshot)
    yield _one("UsdPerHour", sum(record.usd_per_hour for record in records), NONE, dimensions)
    # A pool that a person has set to no agents at all uses nothing of its limit, unless some are left.
    shares = [room.agents_in(pool.name) / max(pool.max_agents, 1) for pool in fleet.pools.values()]
    yield _one("AgentsLimitUsedPercent", 100.0 * max([*shares, room.agents / limits.max_agents]), PERCENT, dimensions)
    overdue = sum(is_drain_overdue(situation, agent) for agent in situation.agents)
    yield _one("DrainsOverdue", overdue, COUNT, dimensions)
    yield _one("HoldsActive", len(situation.standing.holds), COUNT, dimensions)
    yield _one("OverridesActive", len(situation.standing.numbers), COUNT, dimensions)
    yield _one("AgentsStuck", len(situation.memory.stuck), COUNT, dimensions)
    yield _one("BreakersOpen", sum(is_tripped(breaker) for breaker in situation.memory.breakers.values()), COUNT, dimensions)
    yield _one("LaunchRateUsedPercent", 100.0 * room.launched / limits.max_launches_per_hour, PERCENT, dimensions)


def _fleet_totals(fleet: Fleet, data: Iterable[Datum]) -> Iterator[Datum]:
    grouped: dict[str, list[Datum]] = {}
    for datum in data:
        grouped.setdefault(datum.name, []).append(datum)
    for name, parts in grouped.items():
        values = tuple(value for part in parts for value in part.values)
        if not values:
            continue
        if name in _WORST:
            values = (max(values),)
        elif all(len(part.values) == 1 for part in parts) and parts[0].unit == COUNT:
            values = (sum(values),)
        yield Datum(name=name, values=values, unit=parts[0].unit, dimensions=(("Fleet", fleet.name),))


def _builds(agents: Iterable[Agent]) -> Iterator[Build]:
    for agent in agents:
        yield from agent.node.builds if agent.node else ()


def _one(name: str, value: float, unit: str, dimensions: tuple[tuple[str, str], ...]) -> Datum:
    return Datum(name=name, values=(float(value),), unit=unit, dimensions=dimensions)
