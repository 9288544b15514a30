"""One pass's snapshot, joined and resolved: what every rule looks at."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from autoscaler.domain.facts.fleet import AtMonthLimit, Fleet
from autoscaler.domain.facts.memory import Memory
from autoscaler.domain.facts.metering import is_spent, meter, missing_of, next_spot_prices, paid_usd_per_hour
from autoscaler.domain.facts.overrides import Overrides, in_force
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import ControllerView, Snapshot
from autoscaler.domain.forecast.forecast import Forecast, forecast_pools
from autoscaler.domain.situation.agents import Agent, Phase, disagreement, forgotten, forgotten_for_a_day, join_agents, next_missing
from autoscaler.domain.situation.breakers import forget_other_versions, note_connected, still_failing
from autoscaler.domain.situation.controller_restarts import in_grace, is_recovering, next_sessions, waits_to_resume
from autoscaler.domain.situation.demand import Demand, note_unhelped, pins_of_begun, read_demand, starved_by_pool
from autoscaler.domain.situation.pool_view import PoolView

SAMPLES_KEPT = 50


@dataclass(frozen=True, kw_only=True)
class Situation:
    """Everything a rule may look at, with the memory as it will be passed on so far."""

    snapshot: Snapshot
    fleet: Fleet
    agents: tuple[Agent, ...]
    demands: Mapping[str, Demand]
    pools: Mapping[tuple[str, str], PoolView]
    memory: Memory
    versions: Mapping[str, str]  # of launch templates, by instance id
    overrides: Overrides  # what operators have ordered and has not ended
    forgotten: frozenset[str] = frozenset()  # instances that EC2 knew once and does not know any more
    forgotten_for_a_day: frozenset[str] = frozenset()  # of these, those on whose nodes nothing can run any more
    disagreement: str | None = None  # between EC2 and Jenkins, about too many agents to be believed

    @property
    def now(self) -> float:
        """When the snapshot was taken."""
        return self.snapshot.taken_at

    def views(self) -> Iterable[ControllerView]:
        """The controllers that were looked at."""
        return self.snapshot.controllers.values()

    def recovering(self, controller: str) -> bool:
        """Tell whether this controller restarted so lately that missing agents are not to be replaced."""
        return is_recovering(self.memory.sessions.get(controller), self.now)

    @property
    def stopped(self) -> bool:
        """Tell whether nothing new may start anywhere, since the month's money is spent."""
        return _stops(self.fleet, self.memory, self.now)

    def no_giving_up(self, controller: str) -> Reason | None:
        """Say why nothing may be cordoned, terminated or deleted on this controller now; None when it may."""
        view = self.snapshot.controllers.get(controller)
        if view is None or not view.complete:
            return Reason.INCOMPLETE
        if in_grace(self.memory.sessions.get(controller), self.now):
            return Reason.RESTART_GRACE
        if self.disagreement:
            return Reason.EC2_DISAGREES
        return Reason.QUIETING_DOWN if view.quieting_down else None

    def protected(self, agent: Agent) -> bool:
        """Tell whether a build may be bound to this agent's node though it reads idle: pinned, or busy before a restart."""
        life = self.memory.sessions.get(agent.record.controller)
        name = agent.record.node or ""
        demand = self.demands.get(agent.record.controller)
        return demand is None or name in demand.pins or bool(life and name in life.suspects)

    def waits_to_resume(self, agent: Agent) -> bool:
        """Tell whether a build that was on this agent before a restart is still missing."""
        return waits_to_resume(self.memory.sessions.get(agent.record.controller), agent.record.node or "")

    def template_version(self, agent: Agent) -> str:
        """The version of the launch template that an agent came from; "" where EC2 does not say."""
        return self.versions.get(agent.record.instance_id, "")

    def pools_of(self, controller: str) -> dict[str, PoolView]:
        """The pools that may serve one controller, by name."""
        return self._pools_by_controller.get(controller, {})

    def forecasts(self, controller: str) -> dict[str, Forecast]:
        """Executors by pool that are worth having now for what is to come."""
        if controller not in self._forecasts:
            starved = self.starved_by_pool(controller)
            pools = {name: pool.prospects(starved.get(name, 0)) for name, pool in self.pools_of(controller).items()}
            self._forecasts[controller] = forecast_pools(self.snapshot.learned[controller], pools, self.now)
        return self._forecasts[controller]

    def starved_by_pool(self, controller: str) -> dict[str, int]:
        """Count the starved items of one controller, each in the account of one pool."""
        return self._starved[controller]

    def queued_runs(self, controller: str) -> frozenset[str]:
        """Runs of which some part waits in the queue."""
        return self._queued_runs[controller]

    @cached_property
    def _pools_by_controller(self) -> dict[str, dict[str, PoolView]]:
        pools: dict[str, dict[str, PoolView]] = {}
        for (controller, name), pool in self.pools.items():
            pools.setdefault(controller, {})[name] = pool
        return pools

    @cached_property
    def _forecasts(self) -> dict[str, dict[str, Forecast]]:
        return {}  # by controller, once somebody asks

    @cached_property
    def _starved(self) -> dict[str, dict[str, int]]:
        return {name: starved_by_pool(demand) for name, demand in self.demands.items()}

    @cached_property
    def _queued_runs(self) -> dict[str, frozenset[str]]:
        return {view.name: frozenset(item.run for item in view.items if item.run) for view in self.views()}

    def expected(self, controller: str) -> list[tuple[str, float, int]]:
        """Launches whose answer is not known: pool, when, and how many agents they may still bring."""
        return [
            (intent.pool, intent.created_at, missing_of(intent))
            for intent in self.snapshot.intents
            if intent.controller == controller and missing_of(intent) and (controller, intent.pool) in self.pools
        ]


def assess(snapshot: Snapshot, fleet: Fleet) -> Situation:
    """Join, resolve and carry the memory on to this pass."""
    now = snapshot.taken_at
    overrides = snapshot.overrides.at(now)
    fleet = in_force(fleet, overrides)
    memory = snapshot.memory
    missing = next_missing(memory.missing, snapshot)
    gone = forgotten(missing, snapshot)
    for_a_day = forgotten_for_a_day(missing, gone, now)
    agents = join_agents(snapshot, fleet, gone, for_a_day)
    recovering = {
        view.name: is_recovering(memory.sessions.get(view.name), now) or _restarted(memory, view) for view in snapshot.controllers.values()
    }
    demands = {
        view.name: read_demand(view, fleet, snapshot.records, overrides, recovering=recovering[view.name], unhelped=memory.unhelped.keys())
        for view in snapshot.controllers.values()
    }
    boots, booted = _boots(memory, agents)
    versions = {instance.id: instance.template_version for instance in snapshot.instances}
    living = {agent.record.instance_id for agent in agents if not agent.instance_ended}
    spot_prices = next_spot_prices(memory.spot_prices, snapshot)
    memory = replace(
        memory,
        sessions=next_sessions(
            memory.sessions,
            snapshot.controllers.values(),
            snapshot.ended_runs,
            now,
            {name: fleet.resume_timeout(name) for name in snapshot.controllers},
        ),
        idle_since=_since(memory.idle_since, (agent for agent in agents if agent.idle), now),
        boots=boots,
        booted=booted,
        month=meter(memory.month, paid_usd_per_hour(snapshot, fleet, spot_prices), now),
        spot_prices=spot_prices,
        cool_offs={key: c for key, c in memory.cool_offs.items() if now - c.until_at < 3600.0},
        draining_since=_since(memory.draining_since, (agent for agent in agents if agent.mark), now),
        unhelped=note_unhelped(memory.unhelped, demands, now),
        failing=still_failing(memory.failing, snapshot.controllers.values(), now),
        stuck={instance_id: stuck for instance_id, stuck in memory.stuck.items() if instance_id in living},
        missing=missing,
        proven={**memory.proven, **_proven(snapshot, agents, versions)},
    )
    memory = note_connected(forget_other_versions(memory, snapshot.template_versions), agents)
    if _stops(fleet, memory, now):
        demands = {name: _only_begun(demand, snapshot.controllers[name], memory, now) for name, demand in demands.items()}
    by_key: dict[tuple[str, str], list[Agent]] = {}
    for agent in agents:
        by_key.setdefault(agent.key, []).append(agent)
    pools = {
        (view.name, pool.name): PoolView(
            controller=view.name,
            spec=pool,
            agents=tuple(by_key.get((view.name, pool.name), ())),
            memory=memory,
            overrides=overrides,
            now=now,
            look_every_seconds=snapshot.look_every_seconds,
            template_version=snapshot.template_versions.get(pool.name, ""),
        )
        for view in snapshot.controllers.values()
        for pool in fleet.pools_of(view.name)
    }
    return Situation(
        snapshot=snapshot,
        fleet=fleet,
        agents=agents,
        demands=demands,
        pools=pools,
        memory=memory,
        versions=versions,
        overrides=overrides,
        forgotten=gone,
        forgotten_for_a_day=for_a_day,
        disagreement=disagreement(agents, snapshot),
    )


def _stops(fleet: Fleet, memory: Memory, now: float) -> bool:
    return fleet.limits.at_month_limit is AtMonthLimit.STOP and is_spent(memory.month, fleet.limits, now)


def _only_begun(demand: Demand, view: ControllerView, memory: Memory, now: float) -> Demand:
    """Let no agent be kept or brought back for a build that is to begin."""
    life = memory.sessions.get(view.name)
    return replace(demand, pins=pins_of_begun(view, demand.pins, life.since_at if life else now, now))


def _restarted(memory: Memory, view: ControllerView) -> bool:
    life = memory.sessions.get(view.name)
    return view.complete and life is not None and life.session != view.session


def _since(before: Mapping[str, float], agents: Iterable[Agent], now: float) -> dict[str, float]:
    """Carry on since when something is true of each of these agents."""
    return {agent.record.instance_id: before.get(agent.record.instance_id, now) for agent in agents}


def _proven(snapshot: Snapshot, agents: Iterable[Agent], versions: Mapping[str, str]) -> dict[str, str]:
    """Find the pools of whose present launch template version an agent is connected."""
    return {
        agent.pool.name: version
        for agent in agents
        if agent.phase is Phase.READY
        and (version := versions.get(agent.record.instance_id))
        and version == snapshot.template_versions.get(agent.pool.name)
    }


def _boots(memory: Memory, agents: Iterable[Agent]) -> tuple[dict[str, tuple[float, ...]], frozenset[str]]:
    """Note once how long each agent took from its launch to its registration."""
    boots, booted = dict(memory.boots), set[str]()
    for agent in agents:
        record = agent.record
        if record.registered_at is None:
            continue
        booted.add(record.instance_id)
        if record.instance_id not in memory.booted:
            boots[record.pool] = (*boots.get(record.pool, ()), record.registered_at - record.launched_at)[-SAMPLES_KEPT:]
    return boots, frozenset(booted)
