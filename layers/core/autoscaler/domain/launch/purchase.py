"""What one controller gets: stopped agents that start, agents of others, and launches, within limits and offerings."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from math import inf
from typing import TypeAlias

from autoscaler.domain.facts.fleet import Market, Offering, Pool, stoppable
from autoscaler.domain.facts.memory import Trial
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.plan import Cordon, Held, Launch, Start
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import Instance, InstanceState, RecordState, Reservation, parts_of, told_follows
from autoscaler.domain.launch.backoff import keeps_from_starting
from autoscaler.domain.launch.budget import Budget, Refused
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.bets import TrialOf, failing
from autoscaler.domain.situation.canary import asked_lately, is_canary, most_stopped, starts_late, why_outdated
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.situation import Decided, Situation, cordon, leaving
from autoscaler.domain.situation.supply import ExecutorSlot, Supply, spare_elsewhere

# Purchase: the starts and launches of one controller within its limits, offerings and free static nodes.


# What a person asks for is launched whatever monitors do: it may be the trial.
# So many other stopped agents are asked for in one pass if EC2 refuses some.
_MOST_SPARES = 3
_BY_A_PERSON = {Reason.MANUAL, Reason.RESERVED}
# Words, or what writes them once an agent is had: each item of a queue that a limit keeps waiting asks for one in vain.
Detail: TypeAlias = str | Callable[[], str]
# How many agents are reserved, and how long jobs of the pool have waited for one: what is refused is refused until one of these grows.
Terms: TypeAlias = tuple[int, float]


@dataclass(slots=True)
class _Order:
    """Agents planned for one pool, for the weightiest of their reasons. ``guesses``: as many of them are for what is foreseen."""

    pool: PoolView
    market: Market
    offerings: tuple[Offering, ...]
    reason: Reason
    detail: str
    tries: bool = False  # the pool's new image
    count: int = 0
    guesses: int = 0
    guess: str = ""

    @property
    def whole_detail(self) -> str:
        """Say why, and how many of them are guesses at what."""
        return f"{self.detail}; {self.guesses} of {self.count} agents: {self.guess}" if self.guesses else self.detail


@dataclass(slots=True)
class _Starts:
    """Stopped agents of one pool that are to start."""

    pool: PoolView
    reason: Reason
    detail: str
    agents: list[Agent] = field(default_factory=list)


@dataclass(slots=True)
class Purchase:
    """The starts and launches planned for one controller so far.

    ``static_nodes``: free ones by pool; None where nodes are made on demand. ``stopped``: agents that may be started, by pool, best last.
    """

    controller: str
    supply: Supply
    budget: Budget
    static_nodes: dict[str, int] | None
    stopped: dict[str, list[Agent]] = field(default_factory=dict)
    held: dict[tuple[str, Reason, str], Held] = field(default_factory=dict)
    _orders: dict[str, _Order] = field(default_factory=dict)
    _canaries: dict[str, _Order] = field(default_factory=dict)  # of one agent each
    _starts: dict[str, _Starts] = field(default_factory=dict)
    _waiting_seconds: dict[str, float] = field(default_factory=dict)

    def ready_seconds(self, pool: PoolView) -> float:
        """How long one more agent takes until it is there: a start, or a boot."""
        return pool.start_seconds if self.stopped.get(pool.name) else pool.boot_seconds

    def terms(self, pool: PoolView) -> Terms:
        """On what it depends, in a pass, whether one more agent of a pool may be had."""
        return len(self.budget.taken), self._waiting_seconds.get(pool.name, 0.0)

    def buy(self, pool: PoolView, reason: Reason, detail: Detail) -> bool:
        """Plan one agent, if no limit and no back-off forbids it: one that is stopped, if there is any, or else a new one."""
        if self._is_tried(pool, reason):
            return self.buy_new(pool, reason, detail)
        return self.start(pool, reason, detail) or self.buy_new(pool, reason, detail)

    def start(self, pool: PoolView, reason: Reason, detail: Detail) -> bool:
        """Plan to start a stopped agent, if there is any that may start, and nothing pauses its pool."""
        if pool.paused or not self._may_start(pool):
            return False
        agent, offered = self.stopped.get(pool.name, []).pop(), self._offered(pool)
        self.budget.take_start(pool.spec, agent.record, offered[1] if offered else ())
        self.budget.note_launched_for(self.controller)
        self._starts.setdefault(pool.name, _Starts(pool, reason, _told(detail))).agents.append(agent)
        self._add_executors(pool, pool.start_seconds)
        return True

    def _may_start(self, pool: PoolView) -> bool:
        """Tell whether a stopped agent may start, or another one be launched if EC2 refuses that."""
        stopped = self.stopped.get(pool.name)
        if not stopped or self.budget.refusal_to_connect(self.controller):
            return False
        offered = self._offered(pool)
        return not self.budget.refusal_of_start(pool.spec, stopped[-1].record, offered[1] if offered else ())

    def buy_new(self, pool: PoolView, reason: Reason, detail: Detail) -> bool:
        """Plan to launch one agent."""
        offered, tries = self._offered(pool), self.budget.tries(pool.spec)
        if pool.paused and self._pauses(pool, reason):
            return self.hold(pool.name, pool.paused, pool.paused_detail)
        if self._is_tried(pool, reason):
            return self.hold(pool.name, Reason.MOST_MARKED, f"monitors took most agents of {self.controller} offline; one is tried")
        if offered is None:
            return self.hold(pool.name, Reason.NO_OFFERING, pool.refused_detail)
        if not self._has_node(pool):
            return self.hold(pool.name, Reason.NO_FREE_SLOT, f"every slot of the pool on {self.controller} is taken, or marked offline")
        if refusal := self._refusal(pool, offered[1]):
            return self.hold(pool.name, *refusal)
        self.budget.take(pool.spec, offered[1], tries=tries)
        self.budget.note_launched_for(self.controller)
        self._place(_Order(pool, *offered, reason=reason, detail=_told(detail), tries=tries))
        return True

    def _place(self, order: _Order) -> None:
        """Add one agent to the order of its kind, and to the supply."""
        pool, orders = order.pool, self._orders
        if order.tries:
            order.detail += f"; {told_follows(pool.to_try, pool.version)}, and this agent tries it"
            orders = self._canaries
        pool_order = orders.setdefault(pool.name, order)
        pool_order.count += 1
        if order.reason is Reason.FORESEEN is not pool_order.reason:
            pool_order.guesses, pool_order.guess = pool_order.guesses + 1, order.detail
        self._add_executors(pool, pool.boot_seconds)

    def _add_executors(self, pool: PoolView, seconds: float) -> None:
        machine = self.supply.unnamed_machine()
        for _ in range(pool.executors):
            self.supply.add(ExecutorSlot(pool.name, seconds, bought=True, machine=machine))

    def buy_stoppable(self, pool: PoolView, reason: Reason, detail: str) -> bool:
        """Plan to launch one agent that can be stopped: EC2 stops no spot instance of ours, so that patience for spot is over here."""
        self.note_waiting(pool, inf)
        fit = stoppable(pool.spec)
        pool = replace(pool, offerings=tuple(o for o in pool.offerings if o in fit or o.market is Market.SPOT))
        offered = self._offered(pool)
        may_ask = offered is None or offered[0] is Market.ON_DEMAND
        return may_ask and self.buy_new(pool, reason, detail)

    def may_buy(self, pool: PoolView) -> bool:
        """Tell whether nothing forbids one more agent of a pool."""
        if self._pauses(pool):
            return False
        offered = self._offered(pool)
        may_launch = self._has_node(pool) and offered is not None and self._refusal(pool, offered[1]) is None
        return may_launch or (not pool.paused and self._may_start(pool))

    def _refusal(self, pool: PoolView, offerings: tuple[Offering, ...]) -> Refused | None:
        """Name what forbids one more agent of these offerings; None if nothing does."""
        return self.budget.refusal_to_connect(self.controller) or self.budget.refusal(pool.spec, offerings)

    def _pauses(self, pool: PoolView, reason: Reason | None = None) -> bool:
        """Tell whether nothing is launched in a pool now. Boots that keep failing do not keep a new image from being tried."""
        if pool.paused is Reason.MOST_MARKED and reason in _BY_A_PERSON:
            return False
        return pool.paused is not None and not (pool.paused is Reason.BREAKER_OPEN and self.budget.tries(pool.spec))

    def _is_tried(self, pool: PoolView, reason: Reason) -> bool:
        """Tell whether monitors may mark the next agent of a pool, and one that shows whether they do is planned already."""
        return pool.doubt is not None and reason not in _BY_A_PERSON and any((self._orders, self._starts, self._canaries))

    def leaves_others_room(self, pool: PoolView) -> bool:
        """Tell whether one more agent would leave other pools half of every limit that is shared."""
        offered = self._offered(pool)  # where nothing is offered, it is for `buy` to say so
        return offered is None or self.budget.is_ample_for_others(pool.spec, offered[1])

    def note_waiting(self, pool: PoolView, seconds: float) -> None:
        """Note how long an item that needs a launch has waited: spot patience is measured on such items only."""
        self._waiting_seconds[pool.name] = max(self._waiting_seconds.get(pool.name, 0.0), seconds)

    def hold(self, pool: str, reason: Reason, detail: str, limit_of: str = "") -> bool:
        """Note why nothing is launched in a pool; always returns False, for the caller's convenience."""
        key = pool, reason, limit_of
        if key not in self.held:
            self.held[key] = Held(pool=pool, controller=self.controller, reason=reason, detail=detail, limit_of=limit_of)
        return False

    def steps(
        self, *, keep_until: float = 0.0, intent_id: str | None = None, reservation: Reservation | None = None
    ) -> list[Start | Launch]:
        """One start and one launch per pool that agents were planned for. ``reservation``: of the person that they are for."""
        steps = self._steps(keep_until, intent_id)
        return [_for(step, reservation) for step in steps] if reservation else steps

    def _steps(self, keep_until: float, intent_id: str | None) -> list[Start | Launch]:
        starts = [self._start_step(planned, keep_until, intent_id) for planned in self._starts.values()]
        launches = [launch for order in self._orders.values() for launch in self._launches(order, keep_until, intent_id)]
        ids = {name: f"{intent_id}-tries" if intent_id and name in self._orders else intent_id for name in self._canaries}
        # What tries a new image beside other launches is a launch of its own.
        canaries = [self._launch_step(order, order.count, keep_until, ids[name]) for name, order in self._canaries.items()]
        return [*starts, *canaries, *launches]

    def _launches(self, order: _Order, keep_until: float, intent_id: str | None) -> Iterator[Launch]:
        """Ask for all agents at once; of several one tries what boots failed on."""
        place = next((one for one in order.pool.places_to_try if one.market is order.market), None)
        of_place = int(
            place is not None
            and order.count > 1
            and intent_id is None
            and self.budget.tries_places.setdefault(order.pool.name, self.controller) == self.controller  # of a shared pool only one
        )
        yield self._launch_step(order, order.count - of_place, keep_until, intent_id)
        if place and of_place:
            yield self._launch_step(replace(order, offerings=(place,)), 1, keep_until)

    def _launch_step(self, order: _Order, count: int, keep_until: float, intent_id: str | None = None) -> Launch:
        template, image = parts_of(order.pool.to_try if order.tries else order.pool.version)
        return Launch(
            controller=self.controller,
            pool=order.pool.name,
            count=count,
            market=order.market,
            offerings=order.offerings,
            keep_until=keep_until,
            intent_id=intent_id,
            template_version=template,
            image=image,
            tries=order.tries,
            reason=order.reason,
            detail=order.whole_detail,
        )

    def _start_step(self, planned: _Starts, keep_until: float, intent_id: str | None) -> Start:
        """Start agents, and launch as many as EC2 refuses to start, where anything is offered. No job waits for a start that is a proof."""
        pool, count = planned.pool, len(planned.agents)
        offered = None if planned.reason is Reason.PROVES_STARTS else self._offered(pool)
        detail = f"{planned.detail}; EC2 refused to start as many of {count} stopped agents"
        order = _Order(pool, *offered, reason=planned.reason, detail=detail) if offered else None
        return Start(
            controller=self.controller,
            pool=pool.name,
            instance_ids=tuple(agent.record.instance_id for agent in planned.agents),
            spares=tuple(agent.record.instance_id for agent in reversed(self.stopped.get(pool.name, [])))[:_MOST_SPARES],
            keep_until=keep_until,
            request=intent_id or "",
            otherwise=self._launch_step(order, count, keep_until) if order and self._has_node(pool) else None,
            reason=planned.reason,
            detail=planned.detail,
        )

    def _offered(self, pool: PoolView) -> tuple[Market, tuple[Offering, ...]] | None:
        """What to ask for: all agents of a pool on one market, the one that its first order of this pass was for."""
        if order := self._orders.get(pool.name) or self._canaries.get(pool.name):
            return order.market, order.offerings
        return pool.market_offerings(self._waiting_seconds.get(pool.name, 0.0))

    def planned(self, pool: PoolView) -> int:
        """How many agents of a pool are to be launched so far."""
        return sum(orders[pool.name].count for orders in (self._orders, self._canaries) if pool.name in orders)

    def _has_node(self, pool: PoolView) -> bool:
        return self.static_nodes is None or self.planned(pool) < self.static_nodes[pool.name]


def _told(detail: Detail) -> str:
    return detail if isinstance(detail, str) else detail()


def _for(step: Start | Launch, reservation: Reservation) -> Start | Launch:
    """Make a start or a launch a person's; what is launched in place of a start that EC2 refuses, too."""
    if isinstance(step, Launch) or step.otherwise is None:
        return replace(step, reservation=reservation)
    return replace(step, reservation=reservation, otherwise=replace(step.otherwise, reservation=reservation))


# Stopped agents as supply: which of a pool may be started now, and in which order.


def startable(situation: Situation, pool: PoolView) -> list[Agent]:
    """List the stopped agents that may be started, the one that was stopped last at the end: its caches are the freshest.

    None while a start takes too long: the jobs that wait for it have waited long enough, and a launch serves them. Where starts fail,
    few at a time.
    """
    if any(starts_late(situation, agent, pool) for agent in pool.agents):
        return []
    found = [agent for agent in pool.stopped if _may_start(situation, pool, agent)]
    found = sorted(found, key=lambda agent: (agent.record.changed_at, agent.record.instance_id))
    starting = sum(agent.record.state is RecordState.STARTING for agent in pool.agents)
    most = most_stopped(situation.memory, pool.name, situation.now)
    return found if most == inf else found[len(found) - max(0, min(len(found), int(most) - starting)) :]


def _may_start(situation: Situation, pool: PoolView, agent: Agent) -> bool:
    """Tell whether EC2 shows it stopped, does not lack machines for it, and would not launch something newer instead."""
    instance = situation.instances.get(agent.record.instance_id)
    if instance is None or instance.state is not InstanceState.STOPPED:
        return False
    if agent.pool.warm_pool is None or asked_lately(situation.memory, agent, situation.now):
        return False
    if why_outdated(situation, agent) and not is_canary(situation, pool.name):
        return False
    return offering_lacks(situation, pool, instance) is None


def offering_lacks(situation: Situation, pool: PoolView, instance: Instance) -> Trial | None:
    """Return the trial of what EC2 lacks for such an instance; what else it refuses to launch, it may start."""
    offering = offering_of(pool.spec, instance)
    trial = failing(situation.memory, TrialOf.OFFERING.scope(pool.name, offering.key)) if offering else None
    return trial if trial and situation.now < trial.until_at and keeps_from_starting(trial.code) else None


def offering_of(pool: Pool, instance: Instance) -> Offering | None:
    """Find the offering that an on-demand instance was launched from; None where the fleet file has it no more."""
    like = [o for o in pool.offerings if o.instance_type == instance.instance_type and o.market is Market.ON_DEMAND]
    return next((offering for offering in like if offering.subnet in {"", instance.subnet}), None)


# Agents of shared pools that stand idle on one controller while jobs wait on another: taken out of use there, to serve here.


@dataclass(slots=True)
class Rotations:
    """The agents that one controller takes from others in this pass. ``decided``: what the pass does already."""

    situation: Situation
    controller: str
    decided: Decided = ()
    steps: list[Cordon] = field(default_factory=list)
    _spare: dict[str, list[Agent]] = field(default_factory=dict)

    def take(self, pool: PoolView, job: str) -> bool:
        """Take one idle agent of this pool from another controller; False where there is none to be had, or it would be marked here."""
        if pool.doubt is not None:
            return False
        if pool.name not in self._spare:
            found = spare_elsewhere(self.situation, pool)
            self._spare[pool.name] = [agent for agent in found if agent.record.node not in leaving(self.decided, agent.record.controller)]
        if not (spare := self._spare[pool.name]):
            return False
        agent = spare.pop(0)
        detail = f"it is idle, and {job or 'a job'} waits on {self.controller}"
        self.steps.append(cordon(self.situation, agent, MarkClass.ROTATE, Reason.ROTATES, detail))
        return True
