"""Placement: each queue item gets the executor that Jenkins would give it, or an agent is bought for it.

The launch threshold: an agent is bought once the items booked to a pool would together wait so much longer than one boot, or one
start where an agent is stopped, that this, at `wait_usd_per_hour`, is worth what the agent costs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import floor, inf, log10
from typing import NamedTuple

from autoscaler.domain.facts.fleet import Pool, Share
from autoscaler.domain.facts.metering import HOUR_SECONDS
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.plan import Uncordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.forecast.durations import quantiles_of
from autoscaler.domain.launch.budget import Budget
from autoscaler.domain.launch.lending import Loans
from autoscaler.domain.launch.purchase import Detail, Purchase, Terms
from autoscaler.domain.launch.rotations import Rotations
from autoscaler.domain.launch.starting import startable
from autoscaler.domain.repair.bring_back import pinned
from autoscaler.domain.repair.ran_again import wants_on_demand
from autoscaler.domain.repair.static_nodes import slots_left
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.announced import announced
from autoscaler.domain.situation.breakers import cannot_come_back
from autoscaler.domain.situation.left_sides import why_not_wanted
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.rotation import ROTATION_SECONDS
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.steps import Decided, uncordon
from autoscaler.domain.situation.supply import ExecutorSlot, add_by_labels, build_supply, ready_slots
from autoscaler.domain.situation.wants import Want
from autoscaler.domain.wording import counted, dollars_apart, duration, listed

# An executor that is free sooner is waited for: labels of a node are changed for it twice.
WORTH_A_LOAN_SECONDS = 60.0
_OUT_OF_USE = (Phase.RETIRING, Phase.DRAINING)


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
        return f"{items} would wait {_significant(hours)} h together, {waiting}, {relation} an agent of {agent}"


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
        self._servers: dict[str, tuple[str, ...]] = {}
        self._work: dict[tuple[str, str], float] = {}  # by job and pool, once looked up: a queue has many items of one job
        self._buyable: dict[tuple[str, Terms], bool] = {}  # by pool
        self._retiring: dict[str, list[Agent]] = {}
        for agent in pinned(situation, controller):
            if not cannot_come_back(situation.memory, agent):
                self._add_executors(agent)

    def place_queue(self) -> None:
        """Place the items in the order in which Jenkins will take them."""
        waiting = [want for want in self.situation.demands[self.controller].wants if want.mature]
        mature = [*waiting, *announced(self.situation, self.controller)]
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

    def bring_back(self, pools: Iterable[Pool], detail: str) -> bool:
        """Uncordon one retiring agent of these pools: it is up and costs nothing to get."""
        for pool in pools:
            for agent in self._retiring.get(pool.name, []):
                if agent.node and agent.mark and agent.taken_executors < agent.executors:
                    self._retiring[pool.name].remove(agent)
                    self.uncordons.append(uncordon(agent, Reason.DEMAND_IS_BACK, detail))
                    self._add_executors(agent)
                    return True
        return False

    def _add_executors(self, agent: Agent) -> None:
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
        if room:
            self._book(want, room, pool)
            self._settle_account(pool)

    def room_for(self, want: Want) -> tuple[ExecutorSlot, ...]:
        """Find the executor that is free first; for a heavy item as many as it weighs, of one machine, the last of them last."""
        return self.supply.room(self.servers_of(want), want.weight)

    def _soonest(self, want: Want) -> tuple[ExecutorSlot, ...]:
        """Find the room that is free first, a retiring or a rarer agent's where none is now."""
        room = self.room_for(want)
        is_late = not room or room[-1].free_seconds > 0
        if is_late and self._retiring and self.bring_back(want.pools, f"{want.item.job} waits for it"):
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
        agent = self.loans.borrow(want.item, want.expression)
        if agent is None or agent.node is None:
            return False
        add_by_labels(self.supply, self.situation, agent, agent.node.labels | agent.pool.lent_labels)
        self._servers.clear()
        return True

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
            if moved_to := self.room_for(want):
                self._book(want, moved_to, pool)

    def _best_pool(self, want: Want) -> PoolView:
        def score(pool: PoolView) -> tuple[float, int, str]:
            seconds = self._work_seconds(want.item.job, pool.name)
            return pool.score(seconds, self.purchase.ready_seconds(pool), self._items_for.get(pool.name, 1))

        pools = [self.pools[pool.name] for pool in want.pools]
        if len(pools) > 1:
            pools = [pool for pool in pools if self._may_buy(pool)] or pools
        return min(pools, key=score) if len(pools) > 1 else pools[0]

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
        names = [pool.name for pool in want.pools]
        if want.expression is None:  # it tells no label: any agent of its pools will do
            mine = (server for server, pool in self.supply.pool_of.items() if pool in names)
            return self._willing(want, (*names, *mine))
        if want.expression.name not in self._servers:
            matching = (server for server, labels in self.supply.labels.items() if want.expression.matches(labels))
            self._servers[want.expression.name] = tuple(matching)
        return self._willing(want, (*names, *self._servers[want.expression.name]))

    def _willing(self, want: Want, servers: tuple[str, ...]) -> tuple[str, ...]:
        """Leave out the servers that refuse the job of an item, or whose pool declines it."""
        refused, choosy = self.supply.refused, self.supply.choosy
        if want.declined_by and choosy:
            servers = tuple(server for server in servers if choosy.get(server) not in want.declined_by)
        return tuple(server for server in servers if want.item.job not in refused.get(server, ())) if refused else servers


def _why_bought(want: Want) -> tuple[Reason, str]:
    """Say why an agent is bought for an item that no executor will take."""
    job = want.item.job or "a job"
    if want.refused_by:
        return Reason.REFUSED, f"{job} waits, and {listed(want.refused_by)} had a free executor and did not take it"
    return Reason.NOBODY_CAN_SERVE, f"{job} waits, and no running or booting agent can take it"


def _significant(hours: float) -> str:
    """Write hours with two digits: "7.4", "0.013", "120"."""
    return f"{hours:.{max(0, 1 - floor(log10(hours)))}f}" if hours > 0 else "0"


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
            and agent.record.node not in situation.distrust(controller).nodes
            and not cannot_come_back(situation.memory, agent)
        ]
        for name, pool in situation.pools_of(controller).items()
        if not (pool.on_hold or situation.stopped_by(name))
    }


def may_come_back(situation: Situation, agent: Agent) -> bool:
    """Tell whether demand may uncordon an agent: it is surplus, or only outdated and cannot be replaced now; and its machine runs.

    A host or a side that left the fleet file carries the mark of outdated ones, too, and never comes back.
    """
    if agent.phase not in _OUT_OF_USE:
        return False
    pool = situation.pools.get(agent.key)
    if pool is None or agent.instance_ended:
        return False
    is_outdated = agent.phase is Phase.DRAINING and agent.mark is not None and agent.mark.kind is MarkClass.OUTDATED
    is_kept = is_outdated and not pool.may_launch and why_not_wanted(situation, agent) is None
    return agent.phase is Phase.RETIRING or is_kept
