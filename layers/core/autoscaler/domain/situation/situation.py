"""Join one pass's snapshot with the memory, for every rule to read; and write the steps that rules return."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf

from autoscaler.domain.facts.fleet import AtMonthLimit, Fleet
from autoscaler.domain.facts.memory import AgentPast, Learned, Looks, Memory, Missing, Window, patience_of
from autoscaler.domain.facts.metering import SENT_LATER_SECONDS, Level, LevelKind, levels_out_of_hours, missing_of, spent_levels
from autoscaler.domain.facts.nodes import Mark, MarkClass, labels_soon, with_known_weights
from autoscaler.domain.facts.orders import Hold, Overrides, in_force, text_of
from autoscaler.domain.facts.plan import Adopt, BootFailure, Cordon, DeleteNode, EndReservation, Held, Plan, Step, Stop, Terminate, Uncordon
from autoscaler.domain.facts.pools import with_left, with_volumes
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import ControllerView, Instance, InstanceState, Node, Snapshot
from autoscaler.domain.forecast.forecast import Forecast, forecast_pools
from autoscaler.domain.grouping import grouped
from autoscaler.domain.memo import FOR_EVER, Memo
from autoscaler.domain.situation.agents import (
    LATE,
    Agent,
    Phase,
    disagreement,
    forgotten,
    join_agents,
)
from autoscaler.domain.situation.bets import (
    ACCOUNT,
    TrialOf,
    failing,
    failing_labels,
    offered,
    offerings_to_try,
    places_of,
    places_to_try,
    trials_of,
    why_no_node,
)
from autoscaler.domain.situation.demand import NOTHING_WAITS, Demand, announced, executors_by_pool, read_demand
from autoscaler.domain.situation.distrust import Distrust, distrust_of
from autoscaler.domain.situation.looks import EC2, Resumption, blind_seconds, in_grace, is_recovering, next_looks, waits_to_resume
from autoscaler.domain.situation.pool_view import (
    PoolView,
    agent_costs,
    closes_at,
    current_versions,
    launched_and_to_try,
    scheduled,
    slow_to_boot,
    trusted,
    versions_of_instances,
)
from autoscaler.domain.situation.wants import Taker, home_of, may_take


@dataclass(frozen=True, kw_only=True)
class Look:
    """What one pass sees, joined: the fleet file with schedules and overrides in force, agents, and the demand on each controller."""

    snapshot: Snapshot
    fleet: Fleet
    overrides: Overrides  # what operators have ordered and has not ended
    looks: Mapping[str, Looks]  # when each controller and EC2 were seen as a whole, this look included
    agents: tuple[Agent, ...]
    demands: Mapping[str, Demand]
    versions: Mapping[str, str]  # that instances were launched from, by id
    current: Mapping[str, str]  # version that would be launched now if it were proven, by pool; where it is known
    forgotten: Mapping[str, float]  # seconds since EC2 has shown instances that it does not know any more
    memo: Memo = field(repr=False, compare=False)

    @property
    def now(self) -> float:
        """When the snapshot was taken."""
        return self.snapshot.taken_at

    def seen_seconds(self, controller: str, since_at: float) -> float:
        """Count the seconds since then in which a controller could be seen: those that count towards a deadline."""
        return self.now - since_at - blind_seconds(self.looks.get(controller), since_at, self.now)

    def ec2_seen_seconds(self, since_at: float) -> float:
        """The same of EC2."""
        return self.seen_seconds(EC2, since_at)

    @cached_property
    def left_controllers(self) -> frozenset[str]:
        """The controllers of records that are not in the fleet file any more: nobody sees what runs there."""
        named = frozenset(one.controller for record in self.snapshot.records for one in (*record.bindings, *record.leaves))
        return named - frozenset(self.fleet.controllers) - self.snapshot.controllers.keys()

    @cached_property
    def late_launches(self) -> tuple[Agent, ...]:
        """Agents that were launched, not started, and whose deadline to connect has passed where anybody sees that."""
        late = (agent for agent in self.agents if agent.phase in LATE and agent.record.controller in self.snapshot.controllers)
        return tuple(agent for agent in late if agent.record.is_instance and not agent.record.life)

    @cached_property
    def instances(self) -> Mapping[str, Instance]:
        """What EC2 lists, by id."""
        return {instance.id: instance for instance in self.snapshot.instances}

    def version_of(self, agent: Agent) -> str:
        """The version that an agent was launched from; "" where EC2 does not say."""
        return self.versions.get(agent.record.instance_id, "")

    @cached_property
    def queued_runs(self) -> dict[str, frozenset[str]]:
        """Runs of which some part waits in the queue, by controller."""
        return {view.name: frozenset(item.run for item in view.items if item.run) for view in self.snapshot.controllers.values()}


@dataclass(frozen=True, kw_only=True)
class Situation(Look):
    """Everything a rule may look at, with the memory as it will be passed on so far."""

    memory: Memory
    pools: Mapping[tuple[str, str], PoolView]
    disagreement: str | None = None  # between EC2 and Jenkins, about too many agents to be believed
    _forecasts: dict[str, dict[str, Forecast]] = field(default_factory=dict, init=False, repr=False, compare=False)  # once asked for

    @cached_property
    def launched(self) -> Mapping[str, str]:
        """The version that each pool launches, by pool; where it is known."""
        return launched_and_to_try(self.fleet, self.current, self.memory.proven)[0]

    @cached_property
    def to_try(self) -> Mapping[str, str]:
        """The new images that are tried with one agent each, by pool; with the versions of launch templates."""
        return launched_and_to_try(self.fleet, self.current, self.memory.proven)[1]

    @cached_property
    def out_of_use(self) -> tuple[Agent, ...]:
        """The agents that carry our mark: few of many, and each controller's rules look for theirs."""
        return tuple(agent for agent in self.agents if agent.mark is not None)

    def past(self, agent: Agent) -> AgentPast:
        """Return what is remembered of an agent."""
        return self.memory.agent(agent.record.instance_id)

    def window_of(self, pool: PoolView) -> Window:
        """Return what was needed of a pool lately, this look included."""
        known = self.memory.needs(pool.controller, pool.name).window
        return known or Window(opened_at=self.now, seen_at=self.now, peaks=())

    def recovering(self, controller: str) -> bool:
        """Tell whether this controller restarted so lately that missing agents are not to be replaced."""
        return is_recovering(self.memory.sessions.get(controller), self.now)

    @cached_property
    def spent_levels(self) -> tuple[Level, ...]:
        """The levels whose money of the month is spent, where that stops what runs."""
        stops = self.fleet.limits.at_month_limit is AtMonthLimit.STOP
        return spent_levels(self.memory.month, self.fleet, self.now) if stops else ()

    @cached_property
    def stopped_levels(self) -> tuple[Level, ...]:
        """The levels in which nothing new may start, since their money of the month is spent, or their hours of the day are used."""
        out_of_hours = levels_out_of_hours(self.memory.fleet.day, self.fleet, self.now)
        return tuple(dict.fromkeys((*self.spent_levels, *out_of_hours)))

    def stopped_by(self, pool: str) -> Level | None:
        """Find whose limit of the month or the day lets nothing new start in a pool."""
        return next((level for level in self.stopped_levels if level.has(pool)), None)

    def spent_by(self, pool: str) -> Level | None:
        """Find whose money of the month is spent, so that not even a stopped agent of a pool is kept."""
        return next((level for level in self.spent_levels if level.has(pool)), None)

    def no_giving_up(self, controller: str) -> Reason | None:
        """Say why nothing may be cordoned, terminated or deleted on this controller now; None when it may."""
        view = self.snapshot.controllers.get(controller)
        if view is None or not view.complete:
            return Reason.INCOMPLETE
        if view.in_parts:
            return Reason.QUEUE_IN_PARTS
        if in_grace(self.memory.sessions.get(controller), self.now):
            return Reason.RESTART_GRACE
        if self.disagreement:
            return Reason.EC2_DISAGREES
        return Reason.QUIETING_DOWN if view.quieting_down else None

    def believed_nodes(self) -> list[tuple[str, Node]]:
        """The nodes of all controllers of which what is seen can be believed."""
        return [(view.name, node) for view in self.snapshot.controllers.values() if not self.no_giving_up(view.name) for node in view.nodes]

    def protected(self, agent: Agent) -> bool:
        """Tell whether a build may be bound to this agent's node though it reads idle: pinned, or busy before a restart."""
        return self.is_bound(agent.record.controller, agent.record.node or "") and not self._never_held_a_build(agent)

    def _never_held_a_build(self, agent: Agent) -> bool:
        """Tell whether an agent never connected, in a life of which each minute was seen, and in one session of its controller."""
        record, life = agent.record, self.memory.sessions.get(agent.record.controller)
        if life is None or agent.phase is not Phase.LOST or self.memory.has_connected(record.life_id) or not agent.idle:
            return False
        is_seen = not blind_seconds(self.looks.get(record.controller), record.began_at, self.now)
        return record.is_measured and life.since_at <= record.began_at and is_seen

    def is_bound(self, controller: str, name: str) -> bool:
        """Tell whether a build may be bound to a node, by its name."""
        life, demand = self.memory.sessions.get(controller), self.demands.get(controller)
        return demand is None or name in demand.pins or bool(life and name in life.suspects)

    @cached_property
    def distrust(self) -> dict[str, Distrust]:
        """What is known of the nodes of each controller that refuse jobs."""
        return {name: distrust_of(self.memory, name, self.now) for name in self.snapshot.controllers}

    def is_kept(self, agent: Agent) -> bool:
        """Tell whether a suspect agent in quarantine is held for its operator to look at."""
        return self.past(agent).is_kept and agent.mark is not None and agent.mark.kind is MarkClass.QUARANTINE

    def refuses_all(self, agent: Agent) -> bool:
        """Tell whether an agent stands free beside jobs that it may take, and takes none."""
        free_node = self.memory.controller(agent.record.controller).free_nodes.get(agent.record.node or "")
        return free_node is not None and free_node.is_useless

    def ended_unseen(self, instance_id: str) -> bool:
        """Tell whether a machine ended by itself after its controller could not be seen for half of the time that a boot may take."""
        gone = (agent for agent in self.agents if agent.record.instance_id == instance_id and agent.machine_gone)
        return any(
            blind_seconds(self.looks.get(agent.record.controller), agent.record.began_at, self.now) * 2 >= agent.pool.boot_timeout_seconds
            for agent in gone
        )

    def waits_to_resume(self, agent: Agent) -> bool:
        """Tell whether a build that was on this agent before a restart is still missing."""
        return waits_to_resume(self.memory.sessions.get(agent.record.controller), agent.record.node or "")

    def pools_of(self, controller: str) -> dict[str, PoolView]:
        """The pools that may serve one controller, by name."""
        return self._pools_by_controller.get(controller, {})

    def no_node(self, controller: str) -> str:
        """Say why Jenkins makes no node on a controller; "" if it does."""
        return next((pool.no_node for pool in self.pools_of(controller).values()), "")

    def forecasts(self, controller: str) -> dict[str, Forecast]:
        """Executors by pool that are worth having now for what is to come; where enough agents are stopped, at the price of a start."""
        if controller not in self._forecasts:
            self._forecasts[controller] = self._forecast(controller)
        return self._forecasts[controller]

    def forecasts_of_new(self, controller: str) -> dict[str, Forecast]:
        """The same at the price of a boot, whatever is stopped."""
        if not any(pool.stopped for pool in self.pools_of(controller).values()):
            return self.forecasts(controller)
        return self._forecast(controller, new=True)

    def _forecast(self, controller: str, *, new: bool = False) -> dict[str, Forecast]:
        starved, learned, now = self.executors_wanted[controller], self.snapshot.learned[controller], self.now
        pools = {name: pool.prospects(starved.get(name, 0), learned.running) for name, pool in self.pools_of(controller).items()}
        if declined := self.fleet.declined:
            pools = {name: replace(pool, declined=pool.declined | declined.by_own_builds(controller, name)) for name, pool in pools.items()}
        if new:
            pools = {name: replace(prospects, starting=None) for name, prospects in pools.items()}
        facts = now, pools, learned.arrivals, learned.followers, learned.runs, learned.stages
        name = "forecasts of new" if new else "forecasts", controller
        return self.memo.value(name, facts, now, lambda: (forecast_pools(learned, pools, now), FOR_EVER))

    @cached_property
    def executors_wanted(self) -> dict[str, dict[str, int]]:
        """The executors that starved items want, by controller and pool: by their weights, if jobs have any."""
        wanted = dict[str, dict[str, int]]()
        for name, demand in self.demands.items():
            left = {pool.name: pool.left_executors for pool in self.pools_of(name).values()} if demand.wants else {}
            wanted[name] = executors_by_pool(demand, left)
        return wanted

    @cached_property
    def sides(self) -> Mapping[str, list[Agent]]:
        """The agents of each machine that has a record for more than one controller, by machine."""
        machines = grouped((agent.record.machine, agent) for agent in self.agents)
        return {machine: sides for machine, sides in machines.items() if len(sides) > 1}

    @cached_property
    def _pools_by_controller(self) -> dict[str, dict[str, PoolView]]:
        pools: dict[str, dict[str, PoolView]] = {}
        for (controller, name), pool in self.pools.items():
            pools.setdefault(controller, {})[name] = pool
        return pools

    @cached_property
    def starved(self) -> dict[str, dict[str, int]]:
        """How many items starve, mature or not, by controller and the pool for which each is counted: the one with the fewest labels."""
        return {name: dict(Counter(home_of(want).name for want in demand.wants)) for name, demand in self.demands.items()}

    @cached_property
    def asked_labels(self) -> dict[str, frozenset[str]]:
        """The labels and names that matter to items that wait, by controller. Of what Jenkins hides behind a beacon each label may."""
        return {name: frozenset(self._asked_labels(name, demand)) for name, demand in self.demands.items()}

    def _asked_labels(self, controller: str, demand: Demand) -> Iterator[str]:
        for want in {want.kind: want for want in demand.wants}.values():
            yield from want.expression.atoms if want.expression else want.nodes
        if any(want.beacon_labels for want in demand.wants):
            for node in self.snapshot.controllers[controller].nodes:
                yield from node.labels - {node.name}

    def labels_of(self, agent: Agent) -> frozenset[str]:
        """The labels that an agent's node carries, with those that it is about to get back, unless that fails again and again."""
        labels = agent.node.labels if agent.node else frozenset()
        soon = labels_soon(agent.record, agent.node, self.fleet) if agent.node else labels
        return labels if soon != labels and (step := failing_labels(self.memory, agent)) and step.is_closed else soon

    def taker(self, agent: Agent) -> Taker:
        """Describe an agent as one that may take items."""
        return Taker(self.labels_of(agent), agent.pool.name, agent.record.node or "", agent.record.began_at)

    def is_waited_for(self, agent: Agent) -> bool:
        """Tell whether an item that is counted for an agent's pool may be taken by this very agent, and is none that it refused."""
        taker, wants, distrust = self.taker(agent), self.demands[agent.record.controller].wants, self.distrust[agent.record.controller]
        mine = (want for want in wants if home_of(want).name == agent.pool.name and not distrust.refuses(taker.name, want.item.job))
        return any(may_take(want, taker) for want in mine)

    def expected(self, controller: str, *, every: bool = False) -> list[tuple[str, float, int]]:
        """Launches whose answer is not known: pool, when, and how many agents they may still bring; for builds, or for everybody."""
        intents = [one for one in self.snapshot.intents if one.controller == controller and (controller, one.pool) in self.pools]
        # If some of a launch are listed, or none for so long, or EC2 refuses launches, the others may never come: no build counts on them.
        lately = (one for one in intents if self.now - one.created_at < SENT_LATER_SECONDS and not failing(self.memory, ACCOUNT))
        under_way = intents if every else [one for one in lately if not (one.reservation or one.instances)]
        return [(one.pool, one.created_at, agents) for one in under_way if (agents := missing_of(one))]


def join(snapshot: Snapshot, fleet: Fleet, missing: Mapping[str, Missing], memo: Memo) -> Look:
    """Join and resolve what a snapshot shows. ``missing``: instances that EC2 does not show, this look included."""
    overrides = snapshot.overrides.at(snapshot.taken_at)
    has_schedules = any(pool.schedules for pool in fleet.pools.values())
    # What people order beats what was written down.
    fleet = scheduled(snapshot, fleet) if has_schedules else fleet
    fleet = in_force(fleet, overrides) if overrides != Overrides() else fleet
    fleet = with_left(with_volumes(with_known_weights(fleet, snapshot.learned), snapshot), snapshot)
    gone = forgotten(missing, snapshot) if snapshot.unknown_alone else {}
    looks = next_looks(snapshot)
    return Look(
        snapshot=snapshot,
        fleet=fleet,
        overrides=overrides,
        looks=looks,
        agents=join_agents(snapshot, fleet, memo, looks, gone, slow_to_boot(fleet, snapshot)),
        demands={
            view.name: _demand(snapshot, fleet, overrides, view) if view.items or snapshot.run_orders else NOTHING_WAITS
            for view in snapshot.controllers.values()
        },
        versions=versions_of_instances(snapshot, fleet),
        current=current_versions(snapshot, fleet),
        forgotten=gone,
        memo=memo,
    )


def _demand(snapshot: Snapshot, fleet: Fleet, overrides: Overrides, view: ControllerView) -> Demand:
    life, distrust = snapshot.memory.sessions.get(view.name), distrust_of(snapshot.memory, view.name, snapshot.taken_at)
    restarted = view.complete and life is not None and life.session != view.session
    now = snapshot.taken_at
    looks = snapshot.memory.controller(view.name).looks
    resumption = Resumption(
        life=life,
        now=now,
        timeout_seconds=fleet.resume_timeout(view.name),
        recovering=restarted or is_recovering(life, now),
        blind=looks.blind if looks else (),
    )
    demand, orders = read_demand(view, fleet, snapshot.records, overrides, resumption=resumption, distrust=distrust), snapshot.run_orders
    if patience := {name: seconds for name, left in snapshot.learned[view.name].left_queue.items() if (seconds := patience_of(left))}:
        demand = replace(demand, wants=tuple(replace(want, patience_seconds=patience.get(want.label_set, 0.0)) for want in demand.wants))
    return replace(demand, announced=tuple(announced(view, orders, fleet, overrides, now))) if orders else demand


def situate(look: Look, memory: Memory) -> Situation:
    """Complete a look by what is remembered, carried on to it."""
    disagree = disagreement(look.agents, look.snapshot)
    situation = Situation(**vars(look), memory=memory, pools=_pools(look, memory), disagreement=disagree)
    if not (stopped := situation.stopped_levels):
        return situation
    return replace(situation, demands={name: _only_begun(look, demand, name, stopped) for name, demand in look.demands.items()})


def _pools(look: Look, memory: Memory) -> dict[tuple[str, str], PoolView]:
    agents = grouped((agent.key, agent) for agent in look.agents)
    every, pools = look.snapshot.look_every_seconds, look.fleet.pools
    facts = {name: (pool, offered(pool, memory, look.now), trusted(memory.pool(name).boots), every) for name, pool in pools.items()}
    costs = look.memo.values("costs", facts, look.now, lambda _, of: (agent_costs(*of), FOR_EVER))
    launched, to_try = launched_and_to_try(look.fleet, look.current, memory.proven)
    lost = trials_of(memory, TrialOf.PLACE)
    under_way = _places_under_way(look) if lost else frozenset[str]()
    # Static nodes are there already.
    failed = {key: step.why for key, step in trials_of(memory, TrialOf.STEP).items()}
    no_node = {name: why_no_node(failed, name) for name in look.snapshot.controllers if name not in look.fleet.slot_controllers}
    # A launch that was not answered is sent again: that is the try.
    unanswered = {intent.pool for intent in look.snapshot.intents if missing_of(intent) and not intent.instances}
    return {
        (controller, pool.name): PoolView(
            controller=controller,
            spec=pool,
            agents=tuple(agents.get((controller, pool.name), ())),
            memory=memory,
            overrides=look.overrides,
            now=look.now,
            offerings=facts[pool.name][1],
            costs=costs[pool.name],
            version=launched.get(pool.name, ""),
            to_try=to_try.get(pool.name, ""),
            offerings_to_try=() if pool.name in unanswered else offerings_to_try(pool, memory, look.now),
            places_to_try=places_to_try(pool, memory, look.now, under_way) if lost else (),
            no_node=no_node.get(controller, ""),
            closes_at=closes_at(pool, look.snapshot.learned.values()) if pool.capacity else inf,
        )
        for controller in look.snapshot.controllers
        for pool in look.fleet.pools_of(controller)
    }


def _places_under_way(look: Look) -> frozenset[str]:
    """Name the scopes of the types and subnets on which an agent is to connect yet, be it in time or not: no loss is known before."""
    instances = {instance.id: instance for instance in look.snapshot.instances}
    records = (agent.record for agent in look.agents if agent.phase.is_on_its_way)
    return frozenset(scope for record in records for scope in places_of(record, look.fleet, instances))


def _only_begun(look: Look, demand: Demand, controller: str, stopped: tuple[Level, ...]) -> Demand:
    """Let no agent of these levels be kept or brought back for a build that is to begin."""
    if any(level.kind is LevelKind.FLEET for level in stopped):
        return replace(demand, pins=demand.resumes)
    agents = (agent for agent in look.agents if agent.record.controller == controller)
    mine = {agent.record.node for agent in agents if any(level.has(agent.pool.name) for level in stopped)}
    return replace(demand, pins=demand.resumes | (demand.pins - mine))


# Helpers that write steps for an agent, and the plan that steps make together.


Decided = Iterable[Step | Held]


def without_frozen(situation: Situation, decided: Decided) -> list[Step | Held]:
    """Drop every step where an operator froze things, except adopting: that touches nothing, and the limits need it."""
    left: list[Step | Held] = []
    frozen: dict[tuple[str, str], tuple[Hold, ...]] = {}
    for step in decided:
        pool = step.pool or ""
        holds = () if isinstance(step, Held | Adopt) else situation.overrides.holds_on(step.controller, pool)
        freezes = tuple(hold for hold in holds if hold.freeze)
        if freezes:
            frozen[step.controller, pool] = freezes
        else:
            left.append(step)
    for (controller, pool), freezes in frozen.items():
        left.append(Held(pool=pool, controller=controller, reason=Reason.FROZEN, detail=text_of(freezes, situation.now)))
    return left


def plan_of(situation: Situation, decided: Decided, memory: Memory | None = None, failures: tuple[BootFailure, ...] = ()) -> Plan:
    """Make the plan of one pass, without steps that an operator froze."""
    decided = tuple(decided)
    return Plan(
        pass_id=situation.snapshot.pass_id,
        taken_at=situation.now,
        steps=tuple(step for step in decided if not isinstance(step, Held)),
        held=tuple(step for step in decided if isinstance(step, Held)),
        memory=situation.memory if memory is None else memory,
        boot_failures=failures,
        remember=memory is not None,
    )


def leaving(decided: Decided, controller: str) -> set[str]:
    """Name the nodes of a controller that this pass cordons already."""
    return {step.node for step in decided if isinstance(step, Cordon) and step.controller == controller}


def cordon(situation: Situation, agent: Agent, kind: MarkClass, reason: Reason, detail: str) -> Cordon:
    """Cordon an agent in the name of this pass."""
    if agent.node is None:
        raise ValueError(f"{agent.record.instance_id} has no node to cordon")
    mark = Mark(fleet=situation.fleet.name, kind=kind, pass_id=situation.snapshot.pass_id)
    return Cordon(
        controller=agent.record.controller,
        pool=agent.pool.name,
        node=agent.node.name,
        mark=mark,
        over_monitor=agent.phase is Phase.MARKED,
        reason=reason,
        detail=detail,
    )


def uncordon(agent: Agent, reason: Reason, detail: str) -> Uncordon:
    """Remove our mark from an agent's node."""
    if agent.node is None or agent.mark is None:
        raise ValueError(f"{agent.record.instance_id} carries no mark of ours")
    return Uncordon(
        controller=agent.record.controller,
        pool=agent.pool.name,
        node=agent.node.name,
        mark=agent.mark,
        reason=reason,
        detail=detail,
    )


def end_reservation(agent: Agent, until_at: float, reason: Reason, detail: str, *, person: str = "") -> EndReservation:
    """Set when the reservation of an agent ends; with ``person``: of the device of it that they have."""
    return EndReservation(
        controller=agent.record.controller,
        pool=agent.pool.name,
        node=agent.record.node,
        instance_id=agent.record.instance_id,
        until_at=until_at,
        person=person,
        reason=reason,
        detail=detail,
    )


def terminate(agent: Agent, reason: Reason, detail: str) -> Terminate:
    """Terminate an agent."""
    return Terminate(
        controller=agent.record.controller,
        pool=agent.pool.name,
        instance_id=agent.record.instance_id,
        node=agent.record.node,
        mark=agent.mark,
        reason=reason,
        detail=detail,
        ended=tuple(build.key for build in (agent.node.ended if agent.node else ())),
    )


def stop(agent: Agent, reason: Reason, detail: str) -> Stop:
    """Stop an agent that carries our mark."""
    if agent.mark is None:
        raise ValueError(f"{agent.record.instance_id} carries no mark of ours")
    return Stop(
        controller=agent.record.controller,
        pool=agent.pool.name,
        instance_id=agent.record.instance_id,
        node=agent.record.node,
        mark=agent.mark,
        reason=reason,
        detail=detail,
    )


def delete_node(agent: Agent, node: str, reason: Reason) -> DeleteNode | Held:
    """Delete the node of an agent whose instance is gone: once, or what is on it would wait for ever."""
    if agent.is_node_deleted:
        jobs = ", ".join(sorted({build.job or "a build" for build in agent.node.builds})) if agent.node else ""
        detail = f"{node}: its node is deleted, and Jenkins lists it until it has ended {jobs or 'what is on it'}, which takes 5 min"
        return hold_back(agent, Reason.NODE_DELETED, detail)
    return DeleteNode(
        controller=agent.record.controller,
        pool=agent.pool.name,
        node=node,
        instance_id=agent.record.instance_id,
        fate=agent.instance or InstanceState.TERMINATED,
        though_busy=not agent.idle,
        ended=tuple(build.key for build in (agent.node.ended if agent.node else ())),
        reason=reason,
        detail=f"EC2 says that its instance {agent.record.instance_id} is gone",
    )


def hold_unread(agent: Agent) -> Held:
    """Say that nothing is done to an agent whose node is there and was not understood: it is neither missing nor idle."""
    return hold_back(agent, Reason.NODE_UNREAD, f"{agent.record.node} could not be read, so nobody knows whether it is idle")


def hold_back(agent: Agent, reason: Reason, detail: str) -> Held:
    """Say which step is not taken for an agent, and why."""
    return Held(pool=agent.pool.name, controller=agent.record.controller, reason=reason, detail=detail)


# Suppose that agents took no builds any more, to see what jobs would want then.


def without_agents(situation: Situation, instance_ids: Collection[str]) -> Situation:
    """Return the same situation, but for these agents, which take no new builds."""
    if not instance_ids:
        return situation

    def supposed(agents: Collection[Agent]) -> tuple[Agent, ...]:
        return tuple([replace(one, phase=Phase.DRAINING) if one.record.instance_id in instance_ids else one for one in agents])

    keys = {agent.key for agent in situation.agents if agent.record.instance_id in instance_ids}
    pools = {key: replace(pool, agents=supposed(pool.agents)) if key in keys else pool for key, pool in situation.pools.items()}
    # What is worked out from what is supposed is not remembered for the next look.
    return replace(situation, agents=supposed(situation.agents), pools=pools, memo=Memo())


# The door to jobs that pools decline: a fleet without `max_job_seconds` loads and does nothing of it.


def with_job_lengths(fleet: Fleet, learned: Mapping[str, Learned]) -> Fleet:
    """Return the fleet with the jobs that its pools decline, since they state how long jobs may take."""
    from autoscaler.domain.forecast.declined import with_declined  # noqa: PLC0415 - for fleets with the key only

    return with_declined(fleet, learned)
