"""Launch: one walk over the queue gives each item the executor it would get, and buys agents where waiting costs more."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf

from autoscaler.domain.facts.fleet import Market, Offering, Pool
from autoscaler.domain.facts.memory import Learned
from autoscaler.domain.facts.plan import Held, Launch, Uncordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.forecast.durations import quantiles_of
from autoscaler.domain.forecast.forecast import Forecast
from autoscaler.domain.launch.budget import Budget
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.demand import Want
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.steps import uncordon
from autoscaler.domain.situation.supply import ExecutorSlot, Supply, ready_slots

HOUR_SECONDS = 3600.0
# Where less than this share of a boot is left, an agent launched now would seldom be there first.
_EARLY = 0.3


@dataclass(slots=True)
class _Account:
    """What the items booked to one pool would wait longer than for a new agent there."""

    booked: list[tuple[Want, ExecutorSlot, float]] = field(default_factory=list)  # want, slot, seconds of work
    work_seconds: float = 0.0
    excess_seconds: float = 0.0

    def book(self, want: Want, slot: ExecutorSlot, work_seconds: float, excess_seconds: float) -> None:
        self.booked.append((want, slot, work_seconds))
        self.work_seconds += work_seconds
        self.excess_seconds += excess_seconds

    def usd(self, pool: PoolView) -> float:
        return pool.pool.wait_usd_per_hour * self.excess_seconds / HOUR_SECONDS

    def agent_usd(self, pool: PoolView) -> float:
        return pool.extra_usd(self.work_seconds / len(self.booked), len(self.booked))

    def text(self, pool: PoolView, relation: str) -> str:
        hours, usd, price = self.excess_seconds / HOUR_SECONDS, self.usd(pool), self.agent_usd(pool)
        items = f"{len(self.booked)} item{'s' * (len(self.booked) > 1)}"
        return f"{items} would wait {hours:.2g} h together, ${usd:.2f}, {relation} an agent of ${price:.2f}"


@dataclass(slots=True)
class _Order:
    """Agents planned for one pool, for the weightiest of their reasons."""

    market: Market
    offerings: tuple[Offering, ...]
    reason: Reason
    detail: str
    count: int = 0


class QueuePlacement:
    """The walk over one controller's queue. Use once: `run`, `keep_floor`, then read `steps`, `uncordons`, `held`."""

    def __init__(  # noqa: PLR0913 - the parts of one controller's situation
        self,
        controller: str,
        pools: dict[str, PoolView],
        supply: Supply,
        room: Budget,
        learned: Learned,
        now: float,
        queued_runs: frozenset[str],
        *,
        slots: dict[str, int] | None,
    ) -> None:
        """Take the parts; ``supply`` is used up. ``slots``: how many are left, by pool; None where any number of nodes can be made."""
        self._controller = controller
        self._pools = pools
        self._supply = supply
        self._room = room
        self._learned = learned
        self._now = now
        self._runs = queued_runs
        self._slots = slots
        self._accounts = {name: _Account() for name in pools}
        self._orders: dict[str, _Order] = {}
        self._oldest: dict[str, float] = {}
        self._items_for: dict[str, int] = {}
        self._retiring: dict[str, list[Agent]] = {}
        self._servers: dict[str, tuple[str, ...]] = {}
        self.uncordons: list[Uncordon] = []
        self.starts: dict[int, tuple[str, float]] = {}  # of each item: whose executor it takes, and in how many seconds
        self.held: dict[tuple[str, Reason], Held] = {}

    def run(self, wants: Iterable[Want], retiring: Iterable[Agent]) -> None:
        """Walk over the items in the order in which Jenkins will take them."""
        mature = [want for want in wants if want.mature]
        for want in mature:
            for pool in want.pools:
                self._items_for[pool.name] = self._items_for.get(pool.name, 0) + 1
        for agent in retiring:
            self._retiring.setdefault(agent.pool.name, []).append(agent)
        for want in mature:
            self._place(want)
        for name, account in self._accounts.items():
            if account.booked and account.usd(self._pools[name]) > 0:
                self._hold(name, Reason.WORTH_WAITING, account.text(self._pools[name], "against"))

    def forecast_pools(self, foreseen: Mapping[str, Forecast]) -> None:
        """Have executors for what is to come, beyond what the queue takes; what retires comes back before anything is launched.

        A stage is as good as in the queue; for a guess at jobs nothing is launched that would leave other pools less than half of a limit.
        """
        for name, due in foreseen.items():
            pool, detail = self._pools[name], f"{due.executors} executor{'s' * (due.executors > 1)} for what is to come: {due.why}"
            bought = 0
            for number in range(due.executors):
                slot = self._supply.soonest((name,))
                if slot is None or slot.free_seconds > pool.boot_seconds:
                    if not self._bring_back((pool.pool,), detail):
                        may_buy = bought < due.launches and (number < due.stages or self._leaves_others_room(pool))
                        if not (may_buy and self._buy(pool, Reason.FORESEEN, detail)):
                            break
                        bought += 1
                    slot = self._supply.soonest((name,))
                if slot is not None:
                    self._supply.occupy(slot, quantiles_of(self._learned, "", name).p50_seconds)

    def keep_up(self) -> None:
        """Have the agents that the jobs which run and wait would fill, where they are needed again so soon that keeping them pays the boot.

        The jobs that wait now may be done before they are there; those that come next are not.
        """
        for name, items in Counter(server for server, _ in self.starts.values()).items():
            if (pool := self._pools.get(name)) is None:
                continue
            needed = items + sum(agent.busy_executors for agent in pool.agents if agent.phase is Phase.READY)
            while (there := self._supply.executors(name)) < needed:
                number = there // pool.pool.executors + 1
                spared_usd, boot_usd = pool.keep.spared_usd(number), pool.keep.costs.boot_usd
                if not (spared_usd > boot_usd and self._may_buy(pool) and self._leaves_others_room(pool)):
                    break
                detail = f"agent {number} is needed again so soon that keeping it spares ${spared_usd:.2f}, for a boot of ${boot_usd:.2f}"
                self._buy(pool, Reason.FORESEEN, detail)

    def hedge(self) -> None:
        """Launch more than is needed where boots differ so much that it is worth it, and the limits are far.

        For all who wait for agents with most of their boot before them, whenever those were launched: what was added for the jobs of
        an earlier look is there for those of this look, too, and a burst that goes on takes it all.
        """
        for name, items in Counter(self._waits_for_boots()).items():
            pool = self._pools[name]
            executors, more = pool.pool.executors, f"for {items} item{'s' * (items > 1)} not to wait for the slowest boot"
            spare = self._supply.spare(name, pool.boot_seconds) // executors
            most, added = pool.hedges(-(-items // executors), items) - spare, 0
            while added < most and self._may_hedge(pool) and self._buy(pool, Reason.UNEVEN_BOOTS, more):
                added += 1
            if added and self._orders[name].reason is not Reason.UNEVEN_BOOTS:
                self._orders[name].detail += f"; and {added} more, {more}"

    def _waits_for_boots(self) -> Iterable[str]:
        """Of each item that waits for an agent which is far from ready: its pool."""
        for server, seconds in self.starts.values():
            if server in self._pools and _EARLY * (boot := self._pools[server].boot_seconds) < seconds <= boot:
                yield server

    def keep_floor(self, pool: PoolView) -> None:
        """Add what the pool's minimum and its warm executors ask for, beyond what the queue does."""
        name = pool.pool.name
        while (there := self._room.agents_to_work_with(name)) < pool.pool.min_agents:
            if not self._buy(pool, Reason.MIN_AGENTS, f"{there} of {pool.pool.min_agents} agents"):
                return
        warm = pool.pool.warm_executors
        while (spare := self._supply.spare(name, pool.boot_seconds)) < warm:
            if not self._buy(pool, Reason.WARM_EXECUTORS, f"{spare} of {warm} executors are free or on their way"):
                return

    def order(self, pool: PoolView, count: int, detail: str) -> int:
        """Plan ``count`` agents at a person's wish, within the limits; return how many."""
        return sum(self._buy(pool, Reason.MANUAL, detail) for _ in range(count))

    def steps(self, *, keep_until: float = 0.0, intent_id: str | None = None) -> list[Launch]:
        """One launch per pool that agents were planned for."""
        launches = []
        for name, order in self._orders.items():
            launches.append(
                Launch(
                    controller=self._controller,
                    pool=name,
                    count=order.count,
                    market=order.market,
                    offerings=order.offerings,
                    keep_until=keep_until,
                    intent_id=intent_id,
                    template_version=self._pools[name].template_version,
                    reason=order.reason,
                    detail=order.detail,
                )
            )
        return launches

    def _place(self, want: Want) -> None:
        slot = self._supply.soonest(self._servers_of(want))
        if (slot is None or slot.free_seconds > 0) and self._bring_back(want.pools, f"{want.item.job} waits for it"):
            slot = self._supply.soonest(self._servers_of(want))
        pool = self._best_pool(want)
        start = slot.free_seconds if slot else inf
        if start > pool.boot_seconds:
            # Patience with spot is measured on what still waits for a launch, not on what a booting agent will take.
            self._oldest[pool.pool.name] = max(self._oldest.get(pool.pool.name, 0.0), want.item.waiting_seconds)
        if slot is None:
            detail = f"{want.item.job or 'a job'} waits, and no executor can ever take it"
            if not self._buy(pool, Reason.NOBODY_CAN_SERVE, detail):
                return
            slot = self._supply.soonest(self._servers_of(want))
        elif start > pool.boot_seconds and want.item.waiting_seconds + start > pool.pool.max_wait_seconds:
            self._buy(pool, Reason.MAX_WAIT, f"{want.item.job} would wait longer than {pool.pool.max_wait_seconds:g} s")
            slot = self._supply.soonest(self._servers_of(want))
        if slot is not None:
            self._book(want, slot, pool)
            self._settle_account(pool)

    def _book(self, want: Want, slot: ExecutorSlot, pool: PoolView) -> None:
        excess = slot.free_seconds - pool.boot_seconds
        work = quantiles_of(self._learned, want.item.job, slot.server if slot.server in self._pools else pool.pool.name)
        if excess > 0:
            self._accounts[pool.pool.name].book(want, slot, work.p50_seconds, excess)
        self.starts[want.item.id] = slot.server, slot.free_seconds
        self._supply.occupy(slot, work.p50_seconds)

    def _settle_account(self, pool: PoolView) -> None:
        """Buy an agent for each time that the account is full, and let those items choose again."""
        name = pool.pool.name
        while (account := self._accounts[name]).booked and account.usd(pool) >= account.agent_usd(pool):
            if not self._buy(pool, Reason.STARVED_QUEUE, account.text(pool, "for")):
                return
            self._accounts[name] = _Account()
            for _, slot, seconds in account.booked:
                self._supply.occupy(slot, -seconds)
            for want, _, _ in account.booked:
                moved_to = self._supply.soonest(self._servers_of(want))
                if moved_to is not None:
                    self._book(want, moved_to, pool)

    def _buy(self, pool: PoolView, reason: Reason, detail: str) -> bool:
        """Plan one agent, if no limit and no cool-off forbids it."""
        name = pool.pool.name
        offered = self._offered(pool)
        if pool.paused:
            return self._hold(name, pool.paused, pool.paused_detail)
        if offered is None:
            return self._hold(name, Reason.NO_OFFERING, pool.cooled_detail)
        if self._slots is not None and self._planned(name) >= self._slots[name]:
            return self._hold(name, Reason.NO_FREE_SLOT, f"every slot of the pool on {self._controller} is taken, or marked offline")
        refusal = self._room.refusal(pool.pool, offered[1])
        if refusal:
            return self._hold(name, *refusal)
        self._room.take(pool.pool, offered[1])
        order = self._orders.setdefault(name, _Order(*offered, reason=reason, detail=detail))
        order.count += 1
        for _ in range(pool.pool.executors):
            self._supply.add(ExecutorSlot(name, pool.boot_seconds))
        return True

    def _planned(self, pool: str) -> int:
        return self._orders[pool].count if pool in self._orders else 0

    def _hold(self, pool: str, reason: Reason, detail: str) -> bool:
        self.held.setdefault((pool, reason), Held(pool=pool, controller=self._controller, reason=reason, detail=detail))
        return False

    def _offered(self, pool: PoolView) -> tuple[Market, tuple[Offering, ...]] | None:
        """What to ask for: all agents of a pool on one market, the one that its first order of this pass was for."""
        order = self._orders.get(pool.pool.name)
        if order is not None:
            return order.market, order.offerings
        return pool.market_offerings(self._oldest.get(pool.pool.name, 0.0))

    def _best_pool(self, want: Want) -> PoolView:
        def score(pool: PoolView) -> tuple[float, int, str]:
            seconds = quantiles_of(self._learned, want.item.job, pool.pool.name).p50_seconds
            return pool.score(seconds, pool.boot_seconds, self._items_for.get(pool.pool.name, 1))

        pools = [self._pools[pool.name] for pool in want.pools]
        open_pools = [pool for pool in pools if self._may_buy(pool)]
        return min(open_pools or pools, key=score)

    def _may_buy(self, pool: PoolView) -> bool:
        offered = self._offered(pool)
        has_slot = self._slots is None or self._planned(pool.pool.name) < self._slots[pool.pool.name]
        return has_slot and not pool.paused and offered is not None and self._room.refusal(pool.pool, offered[1]) is None

    def _may_hedge(self, pool: PoolView) -> bool:
        offered, name = self._offered(pool), pool.pool.name
        has_slots = self._slots is None or 3 * (self._planned(name) + 1) <= self._slots[name]
        return has_slots and offered is not None and self._may_buy(pool) and self._room.is_ample(pool.pool, offered[1])

    def _leaves_others_room(self, pool: PoolView) -> bool:
        offered = self._offered(pool)  # where nothing is offered, it is for `_buy` to say so
        return offered is None or self._room.is_ample_for_others(pool.pool, offered[1])

    def _servers_of(self, want: Want) -> tuple[str, ...]:
        names = tuple(pool.name for pool in want.pools)
        if want.expression is None:
            return names
        if want.expression.name not in self._servers:
            matching = (server for server, labels in self._supply.labels.items() if want.expression.matches(labels))
            self._servers[want.expression.name] = (*names, *matching)
        return self._servers[want.expression.name]

    def _bring_back(self, pools: Iterable[Pool], detail: str) -> bool:
        """Uncordon one retiring agent of these pools: it is up and costs nothing to get."""
        for pool in pools:
            for agent in self._retiring.get(pool.name, []):
                if agent.node and agent.mark and agent.busy_executors < agent.node.executors:
                    self._retiring[pool.name].remove(agent)
                    self.uncordons.append(uncordon(agent, Reason.DEMAND_IS_BACK, detail))
                    for seconds in ready_slots(agent, self._learned, self._now, self._runs):
                        self._supply.add(ExecutorSlot(pool.name, seconds))
                    return True
        return False
