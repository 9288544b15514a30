"""Purchase: the launches of one controller within its limits, offerings and free static nodes."""

from dataclasses import dataclass, field

from autoscaler.domain.facts.fleet import Market, Offering
from autoscaler.domain.facts.plan import Held, Launch
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.launch.budget import Budget
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.supply import ExecutorSlot, Supply


@dataclass(slots=True)
class _Order:
    """Agents planned for one pool, for the weightiest of their reasons."""

    pool: PoolView
    market: Market
    offerings: tuple[Offering, ...]
    reason: Reason
    detail: str
    count: int = 0


@dataclass(slots=True)
class Purchase:
    """The launches planned for one controller so far. ``static_nodes``: free ones by pool; None where nodes are made on demand."""

    controller: str
    supply: Supply
    budget: Budget
    static_nodes: dict[str, int] | None
    held: dict[tuple[str, Reason], Held] = field(default_factory=dict)
    _orders: dict[str, _Order] = field(default_factory=dict)
    _waiting_seconds: dict[str, float] = field(default_factory=dict)

    def buy(self, pool: PoolView, reason: Reason, detail: str) -> bool:
        """Plan one agent, if no limit and no back-off forbids it."""
        offered = self._offered(pool)
        if pool.paused:
            return self.hold(pool.name, pool.paused, pool.paused_detail)
        if offered is None:
            return self.hold(pool.name, Reason.NO_OFFERING, pool.cooled_detail)
        if not self._has_node(pool):
            detail = f"every slot of the pool on {self.controller} is taken, or marked offline"
            return self.hold(pool.name, Reason.NO_FREE_SLOT, detail)
        if refusal := self.budget.refusal(pool.spec, offered[1]):
            return self.hold(pool.name, *refusal)
        self.budget.take(pool.spec, offered[1])
        self._orders.setdefault(pool.name, _Order(pool, *offered, reason=reason, detail=detail)).count += 1
        for _ in range(pool.executors):
            self.supply.add(ExecutorSlot(pool.name, pool.boot_seconds))
        return True

    def may_buy(self, pool: PoolView) -> bool:
        """Tell whether nothing forbids one more agent of a pool."""
        offered = self._offered(pool)
        return self._has_node(pool) and not pool.paused and offered is not None and self.budget.refusal(pool.spec, offered[1]) is None

    def may_hedge(self, pool: PoolView) -> bool:
        """Tell whether one more agent would leave two thirds of every limit."""
        offered = self._offered(pool)
        is_ample = self.static_nodes is None or 3 * (self._planned(pool) + 1) <= self.static_nodes[pool.name]
        return is_ample and offered is not None and self.may_buy(pool) and self.budget.is_ample(pool.spec, offered[1])

    def leaves_others_room(self, pool: PoolView) -> bool:
        """Tell whether one more agent would leave other pools half of every limit that is shared."""
        offered = self._offered(pool)  # where nothing is offered, it is for `buy` to say so
        return offered is None or self.budget.is_ample_for_others(pool.spec, offered[1])

    def note_waiting(self, pool: PoolView, seconds: float) -> None:
        """Note how long an item that needs a launch has waited: spot patience is measured on such items only."""
        self._waiting_seconds[pool.name] = max(self._waiting_seconds.get(pool.name, 0.0), seconds)

    def hold(self, pool: str, reason: Reason, detail: str) -> bool:
        """Note why nothing is launched in a pool; always returns False, for the caller's convenience."""
        self.held.setdefault((pool, reason), Held(pool=pool, controller=self.controller, reason=reason, detail=detail))
        return False

    def add_detail(self, pool: PoolView, reason: Reason, detail: str) -> None:
        """Add to the detail of a launch that was planned for another reason."""
        if self._orders[pool.name].reason is not reason:
            self._orders[pool.name].detail += detail

    def steps(self, *, keep_until: float = 0.0, intent_id: str | None = None) -> list[Launch]:
        """One launch per pool that agents were planned for."""
        return [
            Launch(
                controller=self.controller,
                pool=name,
                count=order.count,
                market=order.market,
                offerings=order.offerings,
                keep_until=keep_until,
                intent_id=intent_id,
                template_version=order.pool.template_version,
                reason=order.reason,
                detail=order.detail,
            )
            for name, order in self._orders.items()
        ]

    def _offered(self, pool: PoolView) -> tuple[Market, tuple[Offering, ...]] | None:
        """What to ask for: all agents of a pool on one market, the one that its first order of this pass was for."""
        if order := self._orders.get(pool.name):
            return order.market, order.offerings
        return pool.market_offerings(self._waiting_seconds.get(pool.name, 0.0))

    def _planned(self, pool: PoolView) -> int:
        return self._orders[pool.name].count if pool.name in self._orders else 0

    def _has_node(self, pool: PoolView) -> bool:
        return self.static_nodes is None or self._planned(pool) < self.static_nodes[pool.name]
