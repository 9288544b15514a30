"""Placement: each queue item gets the executor that Jenkins would give it, or an agent is lent or bought for it.

The launch threshold: an agent is bought once the items booked to a pool would together wait so much longer than one boot, or one
start where an agent is stopped, that this, at `wait_usd_per_hour`, is worth what the agent costs.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import floor, inf, log10
from typing import NamedTuple

from autoscaler.domain.facts.fleet import Fleet, Lending, Pool, Share
from autoscaler.domain.facts.memory import Memory
from autoscaler.domain.facts.metering import HOUR_SECONDS
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.plan import Held, Lend, TakeBack, Uncordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.forecast.durations import quantiles_of
from autoscaler.domain.forecast.forecast import NOTHING
from autoscaler.domain.launch.budget import Budget
from autoscaler.domain.launch.purchase import Detail, Purchase, Rotations, Terms, startable
from autoscaler.domain.repair.lost_builds import wants_on_demand
from autoscaler.domain.repair.nodes import pinned, slots_left
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.bets import cannot_come_back
from autoscaler.domain.situation.left import why_not_wanted
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.situation import Decided, Look, Situation, uncordon
from autoscaler.domain.situation.supply import ROTATION_SECONDS, ExecutorSlot, add_by_labels, build_supply, has_other_labels, ready_slots
from autoscaler.domain.situation.wants import Taker, Want, may_take
from autoscaler.domain.wording import counted, dollars_apart, duration, listed

# Lending: jobs of a general kind borrow an idle agent of a rarer one, where its pool allows that.
#
# Jenkins places builds, and not we: an agent is lent by giving its node the labels of the general kind, and taken back by removing them.
# A loan is for jobs that wait now. It ends once they have begun or left, once its own kind is needed, or by itself; what was matched
# until then runs to its end.


# Longer than Jenkins and a look take to start what waits; what still waits then is lent to again.
LOAN_SECONDS = 600.0
# A job that was seen so lately comes again, and would find no agent while they are lent.
_REFUSED_FOR_SECONDS = 7 * 86_400.0


@dataclass(slots=True)
class Loans:
    """The agents of one controller that may still be lent in this pass, as one job after another borrows them."""

    situation: Situation
    controller: str
    steps: list[Lend] = field(default_factory=list)
    held: dict[str, Held] = field(default_factory=dict)  # by pool
    _lendable: dict[str, list[Agent]] = field(default_factory=dict)
    _lending: list[PoolView] = field(init=False)  # the pools that have labels to lend agents by, the cheapest first; mostly there are none

    def __post_init__(self) -> None:
        """Find the pools that lend once, and not for each job."""
        pools = (pool for pool in self.situation.pools_of(self.controller).values() if pool.spec.lent_labels)
        self._lending = sorted(pools, key=lambda pool: (pool.usd_per_hour, pool.name))

    def borrow(self, want: Want) -> Agent | None:
        """Lend an idle agent to this job; None where there is none, or its pool does not lend it."""
        item, fleet = want.item, self.situation.fleet
        for pool in self._lending:
            if item.waiting_seconds < pool.spec.queue_maturity_seconds or not _needs_a_loan(want, fleet, pool.spec, pool.spec.lent_labels):
                continue
            if fleet.declines(self.controller, pool.name, item.job, of_pipeline=bool(item.run)):
                continue
            if pool.spec.lend is Lending.NEVER:
                self._refuse(pool, want, "lend: never")
            elif refusal := why_refused(self.situation, pool):
                self._refuse(pool, want, refusal)
            elif agent := self._take(pool):
                self._lend(agent, want)
                return agent
        return None

    def _take(self, pool: PoolView) -> Agent | None:
        if pool.name not in self._lendable:
            idle = _idle(self.situation, pool)
            self._lendable[pool.name] = idle[: max(0, len(idle) - needed_by_its_own(self.situation, pool))]
        there = self._lendable[pool.name]
        return there.pop() if there else None

    def _lend(self, agent: Agent, want: Want) -> None:
        if agent.node is None:
            raise ValueError(f"{agent.record.instance_id} has no node to lend")
        self.steps.append(
            Lend(
                controller=self.controller,
                pool=agent.pool.name,
                node=agent.node.name,
                instance_id=agent.record.instance_id,
                until_at=self.situation.now + LOAN_SECONDS,
                reason=Reason.LENT,
                detail=_told(want),
            )
        )

    def _refuse(self, pool: PoolView, want: Want, why: str) -> None:
        if _idle(self.situation, pool):
            detail = f"{_told(want)}, and an idle agent of {pool.name} is not lent ({why})"
            self.held[pool.name] = Held(pool=pool.name, controller=self.controller, reason=Reason.NOT_LENT, detail=detail)


def _told(want: Want) -> str:
    return f"{want.item.job or 'a job'} waits for {want.expression.name if want.expression else 'an executor'}"


def take_back(situation: Situation, controller: str, _decided: Decided) -> Iterator[TakeBack]:
    """End the loans that nobody waits for any more, those of agents that their own kind needs, and those that the file wants no more."""
    for pool in situation.pools_of(controller).values():
        lent = [agent for agent in pool.agents if agent.node is not None and agent.record.is_lent(situation.now)]
        if not lent:
            continue
        needed = needed_by_its_own(situation, pool)
        for agent in lent:
            if why := _why_unwanted(agent):
                yield _taken_back(agent, Reason.LENDS_NO_MORE, why)
            elif needed > len(_idle(situation, pool)):
                detail = f"{counted(needed, 'agent')} of {pool.name} needed by jobs of their own kind"
                yield _taken_back(agent, Reason.NEEDED_BY_ITS_OWN, detail)
            elif not _is_lent_for(situation, agent):
                yield _taken_back(agent, Reason.LOAN_OVER, "no job that it could be lent to waits any more")


def why_refused(situation: Situation, pool: PoolView) -> str:
    """Say why no agent of a pool is lent, whoever waits; "" where they are."""
    if pool.on_hold:
        return "a person paused the pool"
    seen_at = situation.memory.pool(pool.name).never_lent_at
    if seen_at is not None and situation.now - seen_at < _REFUSED_FOR_SECONDS:
        ago = duration(situation.now - seen_at)
        return f"a job that excludes a label of the general kind asked for it {ago} ago: it could not start on an agent that is lent"
    return ""


def needed_by_its_own(situation: Situation, pool: PoolView) -> int:
    """Count the agents that jobs of the pool's own kind wait for; where it lends idle ones only, those foreseen and kept free, too."""
    executors = len(situation.demands[pool.controller].waits_for(pool.name))
    if pool.spec.lend is Lending.IDLE:
        executors += situation.forecasts(pool.controller).get(pool.name, NOTHING).executors
    return -(-(executors + pool.spec.warm_executors) // pool.executors)


def note_never_lent(memory: Memory, look: Look) -> dict[str, float]:
    """Remember when jobs were last seen that need an agent of a pool and could not start on one that is lent."""
    known = {name: past.never_lent_at for name, past in memory.pools.items() if past.never_lent_at is not None}
    kept = {name: at for name, at in known.items() if look.now - at < _REFUSED_FOR_SECONDS}
    if not any(pool.lent_labels for pool in look.fleet.pools.values()):
        return kept
    for demand in look.demands.values():
        for want in demand.wants:
            for pool in want.pools:
                own = pool.labels | {look.fleet.ownership_label}
                if pool.lent_labels and want.expression and not want.expression.matches(own | pool.lent_labels):
                    kept[pool.name] = look.now
    return kept


def _idle(situation: Situation, pool: PoolView) -> list[Agent]:
    """Find its idle agents that are not lent; of those that are made from a static node the labels are its operator's."""
    now = situation.now
    return [agent for agent in pool.ready if agent.idle and agent.record.labels and not agent.record.is_lent(now)]


def _is_lent_for(situation: Situation, agent: Agent) -> bool:
    """Tell whether a job waits that the agent may take only because it is lent."""
    wants = situation.demands[agent.record.controller].waiting
    return any(_needs_a_loan(want, situation.fleet, agent.pool, frozenset(agent.record.lent_labels)) for want in wants)


def _needs_a_loan(want: Want, fleet: Fleet, pool: Pool, lent_labels: frozenset[str]) -> bool:
    """Tell whether agents of a pool may take an item with these labels beside their own, and not without them."""
    own = Taker(pool.labels | {fleet.ownership_label}, pool.name)
    return may_take(want, own._replace(labels=own.labels | lent_labels)) and not may_take(want, own)


def _why_unwanted(agent: Agent) -> str:
    """Say why the fleet file as it is now lends an agent no more by the labels that it was lent with; "" where it does."""
    if agent.pool.lend is Lending.NEVER:
        return f"the fleet file lends agents of {agent.pool.name} no more"
    labels = set(agent.record.lent_labels).difference(agent.pool.lent_labels)
    return f"the fleet file lends agents of {agent.pool.name} no more to jobs that ask for {' '.join(sorted(labels))}" if labels else ""


def _taken_back(agent: Agent, reason: Reason, detail: str) -> TakeBack:
    if agent.node is None:
        raise ValueError(f"{agent.record.instance_id} has no node to take back")
    return TakeBack(
        controller=agent.record.controller,
        pool=agent.pool.name,
        node=agent.node.name,
        instance_id=agent.record.instance_id,
        reason=reason,
        detail=detail,
    )


# Placement on executors, and the agents that are bought.


# An executor that is free sooner is waited for: labels of a node are changed for it twice.
WORTH_A_LOAN_SECONDS = 60.0


@dataclass(slots=True)
class _Account:
    """The items of one pool that wait longer than a boot: their total wait beyond it, and their work."""

    booked: list[tuple[Want, Sequence[tuple[ExecutorSlot, float]]]] = field(default_factory=list)  # seconds planned on each executor
    executors: int = 0  # that they take
    work_seconds: float = 0.0
    excess_seconds: float = 0.0
    refused_on: Terms | None = None  # an agent was wanted for these items, and something forbade it

    def book(self, want: Want, planned: Sequence[tuple[ExecutorSlot, float]], work_seconds: float, excess_seconds: float) -> None:
        self.booked.append((want, planned))
        self.executors += len(planned)
        self.work_seconds += work_seconds * len(planned)
        self.excess_seconds += excess_seconds

    def waiting_usd(self, pool: PoolView) -> float:
        return pool.spec.wait_usd_per_hour * self.excess_seconds / HOUR_SECONDS

    def agent_usd(self, pool: PoolView, ready_seconds: float) -> float:
        return pool.extra_usd(self.work_seconds / self.executors, self.executors, ready_seconds)

    def is_full(self, pool: PoolView, ready_seconds: float) -> bool:
        return bool(self.booked) and self.waiting_usd(pool) >= self.agent_usd(pool, ready_seconds)

    def text(self, pool: PoolView, ready_seconds: float, relation: str) -> str:
        hours, items = self.excess_seconds / HOUR_SECONDS, counted(len(self.booked), "item")
        waiting, agent = dollars_apart(self.waiting_usd(pool), self.agent_usd(pool, ready_seconds))
        digits = max(0, 1 - floor(log10(hours))) if hours > 0 else 0  # two that count: "7.4", "0.013", "120"
        return f"{items} would wait {hours:.{digits}f} h together, {waiting}, {relation} an agent of {agent}"


class PlannedStart(NamedTuple):
    """The executor that an item takes: of which server, in how many seconds, and the key of the build that has it now, if any.

    A tuple: placing a queue makes one for each item. ``machine``: of which it is, "" where nobody knows; ``bought``: of an agent that is
    yet to be launched or started; ``first_seconds``: in how many the executor is free before any item of the queue takes it.
    """

    server: str
    seconds: float
    build: str = ""
    machine: str = ""
    bought: bool = False
    first_seconds: float = 0.0


class QueuePlacement:
    """One controller's executors over time, the items placed on them, and what is bought and brought back for them."""

    def __init__(self, situation: Situation, controller: str, budget: Budget, decided: Decided = ()) -> None:
        """Begin with all executors that are there or on their way; what is bought is taken from ``budget``."""
        self.situation = situation
        self.controller = controller
        self.pools = situation.pools_of(controller)
        self.learned = situation.snapshot.learned[controller]
        self.supply = build_supply(situation, controller, decided)
        stopped = {name: startable(situation, pool) for name, pool in self.pools.items() if pool.stopped}
        self.purchase = Purchase(controller, self.supply, budget, slots_left(situation, controller), stopped)
        self.uncordons: list[Uncordon] = []
        self.loans = Loans(situation, controller)
        self.rotations = Rotations(situation, controller, decided)
        self.starts: dict[int, PlannedStart] = {}  # by item
        self._accounts = {name: _Account() for name in self.pools}
        self._items_for: dict[str, int] = {}
        self._servers: dict[tuple[object, ...], tuple[str, ...]] = {}  # by kind of want
        self._work: dict[tuple[str, str], float] = {}  # by job and pool, once looked up: a queue has many items of one job
        self._ranks: dict[tuple[str, object, int], list[PoolView]] = {}  # by job, kind of want, and agents bought so far
        self._buyable: dict[tuple[str, Terms], bool] = {}  # by pool
        self._retiring: dict[str, list[Agent]] = {}
        for agent in pinned(situation, controller):
            if not cannot_come_back(situation.memory, agent):
                self._add_executors(agent)

    def place_queue(self) -> None:
        """Place the items in the order in which Jenkins will take them."""
        demand = self.situation.demands[self.controller]
        mature = [*(want for want in demand.wants if want.mature), *demand.announced]
        for want in mature:
            for pool in want.pools:
                self._items_for[pool.name] = self._items_for.get(pool.name, 0) + 1
        self._retiring = {name: agents for name, agents in _retiring(self.situation, self.controller).items() if agents}
        for want in mature:
            self._place(want)
        for name in self._accounts:
            self._hold_worth_waiting(self.pools[name])

    def _hold_worth_waiting(self, pool: PoolView) -> None:
        """Note that waiting costs less than an agent, if that is why none is bought: not if a limit or a back-off forbade it."""
        self._settle_account(pool)  # what is booked last may cost as much as an agent since others took its executors
        account, ready = self._accounts[pool.name], self.purchase.ready_seconds(pool)
        if account.waiting_usd(pool) > 0 and account.refused_on is None:
            self.purchase.hold(pool.name, Reason.WORTH_WAITING, account.text(pool, ready, "against"))

    def bring_back(self, pools: Iterable[Pool], detail: str, want: Want | None = None) -> bool:
        """Uncordon one retiring agent of these pools, which may take what waits: it is up and costs nothing to get."""
        for pool in pools:
            for agent in self._retiring.get(pool.name, []):
                fits = want is None or may_take(want, self.situation.taker(agent))
                if fits and agent.node and agent.mark and agent.taken_executors < agent.executors:
                    self._retiring[pool.name].remove(agent)
                    self.uncordons.append(uncordon(agent, Reason.DEMAND_IS_BACK, detail))
                    self._add_executors(agent)
                    return True
        return False

    def _add_executors(self, agent: Agent) -> None:
        if has_other_labels(self.situation, agent):
            self._add_by_labels(agent, self.situation.labels_of(agent))
            return
        for seconds, build in ready_slots(self.situation, agent):
            self.supply.add(ExecutorSlot(agent.pool.name, seconds, build=build, machine=agent.record.machine))

    def _place(self, want: Want) -> None:
        room = self._soonest(want)
        pool = self._best_pool(want)
        start = room[-1].free_seconds if room else inf
        is_late = start > self.purchase.ready_seconds(pool)
        if is_late:
            firm = wants_on_demand(self.situation.memory, self.controller, want.item.id)
            self.purchase.note_waiting(pool, inf if firm else want.item.waiting_seconds)
        if not room:
            if not self.purchase.buy(pool, *_why_bought(want)):
                return
            room = self.room_for(want)
        elif is_late:
            room = self._soon_enough(want, pool, room)
        self._book(want, room, pool)
        self._settle_account(pool)

    def room_for(self, want: Want) -> tuple[ExecutorSlot, ...]:
        """Find the executor that is free first; for a heavy item as many as it weighs, of one machine, the last of them last."""
        return self.supply.room(self.servers_of(want), want.weight)

    def _soonest(self, want: Want) -> tuple[ExecutorSlot, ...]:
        """Find the room that is free first, a retiring or a rarer agent's where none is now."""
        room = self.room_for(want)
        is_late = not room or room[-1].free_seconds > 0
        if is_late and self._retiring and self.bring_back(want.pools, f"{want.item.job} waits for it", want):
            room = self.room_for(want)
        if (not room or room[-1].free_seconds > WORTH_A_LOAN_SECONDS) and self._borrow(want):
            room = self.room_for(want)
        if (not room or room[-1].free_seconds > ROTATION_SECONDS) and self._rotate(want):
            room = self.room_for(want)
        return room

    def _rotate(self, want: Want) -> bool:
        """Take an agent of a shared pool that stands idle on another controller: it is up, and costs nothing more."""
        for pool in want.pools:
            if pool.share is Share.ROTATE and self.rotations.take(self.pools[pool.name], want.item.job):
                machine = self.supply.unnamed_machine()
                for _ in range(pool.executors):
                    self.supply.add(ExecutorSlot(pool.name, ROTATION_SECONDS, machine=machine))
                return True
        return False

    def _borrow(self, want: Want) -> bool:
        """Borrow an agent of a rarer kind for an item: it stands idle, and costs nothing more."""
        agent = self.loans.borrow(want)
        if agent is None or agent.node is None:
            return False
        self._add_by_labels(agent, agent.node.labels | agent.pool.lent_labels)
        return True

    def _add_by_labels(self, agent: Agent, labels: frozenset[str]) -> None:
        add_by_labels(self.supply, self.situation, agent, labels)
        self._servers.clear()

    def _soon_enough(self, want: Want, pool: PoolView, room: tuple[ExecutorSlot, ...]) -> tuple[ExecutorSlot, ...]:
        """Buy agents until an item waits no longer than is allowed; those ahead of it take theirs first."""
        most = pool.spec.max_wait_seconds
        while (seconds := _free_in(room)) > self.purchase.ready_seconds(pool) and want.item.waiting_seconds + seconds > most:
            if not self._buy(pool, Reason.MAX_WAIT, f"{want.item.job} would wait longer than {duration(most)} (max_wait_seconds)"):
                break
            self.choose_again(pool)
            room = self.room_for(want)
        return room

    def _book(self, want: Want, room: tuple[ExecutorSlot, ...], pool: PoolView) -> None:
        server, begins = room[-1].server, room[-1].free_seconds
        excess = begins - self.purchase.ready_seconds(pool)
        work = self._work_seconds(want.item.job, server if server in self.pools else pool.name)
        last = room[-1]
        self.starts[want.item.id] = PlannedStart(server, begins, last.build, last.machine, last.bought, last.first_seconds)
        planned = self.supply.occupy_together(room, work)
        if excess > 0:
            self._accounts[pool.name].book(want, planned, work, excess)

    def _settle_account(self, pool: PoolView) -> None:
        """Buy an agent for each time that the account is full, until one is refused: each item of the queue asks."""
        while (account := self._accounts[pool.name]).refused_on != self.purchase.terms(pool):
            ready = self.purchase.ready_seconds(pool)
            if not account.is_full(pool, ready) or not self._buy(pool, Reason.STARVED_QUEUE, partial(account.text, pool, ready, "for")):
                return
            self.choose_again(pool)

    def _buy(self, pool: PoolView, reason: Reason, detail: Detail) -> bool:
        """Buy an agent for items that other executors take later; note on their account if something forbids that."""
        account, terms = self._accounts[pool.name], self.purchase.terms(pool)
        if account.refused_on != terms and self.purchase.buy(pool, reason, detail):
            return True
        account.refused_on = terms
        return False

    def choose_again(self, pool: PoolView) -> None:
        """Let the items that wait longer than a boot choose again: there are more executors now, and Jenkins gives them the first."""
        account, self._accounts[pool.name] = self._accounts[pool.name], _Account()
        for _, planned in account.booked:
            for slot, seconds in planned:
                self.supply.occupy(slot, -seconds)
        for want, _ in account.booked:
            self._book(want, self.room_for(want), pool)

    def _best_pool(self, want: Want) -> PoolView:
        if len(want.pools) == 1:
            return self.pools[want.pools[0].name]
        question = want.item.job, want.kind, len(self.purchase.budget.taken)
        if question not in self._ranks:
            self._ranks[question] = self._ranked(want)
        ranked = self._ranks[question]
        return next((pool for pool in ranked if self._may_buy(pool)), ranked[0])

    def _ranked(self, want: Want) -> list[PoolView]:
        """Order the pools for an item, the cheapest at the beginning."""

        def score(pool: PoolView) -> tuple[float, int, str]:
            seconds = self._work_seconds(want.item.job, pool.name)
            return pool.score(seconds, self.purchase.ready_seconds(pool), self._items_for.get(pool.name, 1))

        return sorted((self.pools[pool.name] for pool in want.pools), key=score)

    def _may_buy(self, pool: PoolView) -> bool:
        question = pool.name, self.purchase.terms(pool)
        if question not in self._buyable:
            self._buyable[question] = self.purchase.may_buy(pool)
        return self._buyable[question]

    def _work_seconds(self, job: str, pool: str) -> float:
        if (job, pool) not in self._work:
            self._work[job, pool] = quantiles_of(self.learned, job, pool).p50_seconds
        return self._work[job, pool]

    def servers_of(self, want: Want) -> tuple[str, ...]:
        """Name the pools and other nodes whose executors an item may take."""
        kind = want.kind
        if kind not in self._servers:
            others = (server for server, taker in self.supply.takers.items() if may_take(want, taker))
            self._servers[kind] = (*(pool.name for pool in want.pools), *others)
        servers, refused = self._servers[kind], self.supply.refused
        return tuple(server for server in servers if want.item.job not in refused.get(server, ())) if refused else servers


def _why_bought(want: Want) -> tuple[Reason, str]:
    """Say why an agent is bought for an item that no executor will take."""
    job = want.item.job or "a job"
    if want.refused_by:
        return Reason.REFUSED, f"{job} waits, and {listed(want.refused_by)} had a free executor and did not take it"
    return Reason.NOBODY_CAN_SERVE, f"{job} waits, and no running or booting agent can take it"


def _free_in(room: Sequence[ExecutorSlot]) -> float:
    """Say when the last executor of a room is free; where there is none, nothing is waited for."""
    return room[-1].free_seconds if room else 0.0


def _retiring(situation: Situation, controller: str) -> dict[str, list[Agent]]:
    """Retiring agents that demand may bring back, by pool; not those that come back whatever it is."""
    kept = {agent.record.instance_id for agent in pinned(situation, controller)}
    return {
        name: [
            agent
            for agent in pool.agents
            if may_come_back(situation, agent)
            and agent.record.instance_id not in kept
            and agent.record.node not in situation.distrust[controller].nodes
            and not cannot_come_back(situation.memory, agent)
        ]
        for name, pool in situation.pools_of(controller).items()
        if not (pool.on_hold or situation.stopped_by(name))
    }


def may_come_back(situation: Situation, agent: Agent) -> bool:
    """Tell whether demand may uncordon an agent: it is surplus, or only outdated and cannot be replaced now; and its machine runs.

    A host or a side that left the fleet file carries the mark of outdated ones, too, and never comes back.
    """
    if not agent.phase.is_out_of_use:
        return False
    pool = situation.pools.get(agent.key)
    if pool is None or agent.instance_ended:
        return False
    is_outdated = agent.phase is Phase.DRAINING and agent.mark is not None and agent.mark.kind is MarkClass.OUTDATED
    is_kept = is_outdated and not pool.may_launch and why_not_wanted(situation, agent) is None
    return agent.phase is Phase.RETIRING or is_kept
