"""A pool as it stands on one controller: its agents, what one more would cost, how soon it would be there."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from statistics import median

from autoscaler.domain.agents import Agent
from autoscaler.domain.memory import Memory, Returns
from autoscaler.domain.model import Market, Offering, Pool
from autoscaler.domain.numbers import BOOTS_TO_TRUST, PASS_SECONDS, TAILS_TO_TRUST
from autoscaler.domain.reasons import Reason
from autoscaler.domain.returns import Costs, Keeping
from autoscaler.domain.standing import Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolView:
    """One pool on one controller, with what planning takes for its price and its boot."""

    controller: str
    pool: Pool
    agents: tuple[Agent, ...]
    boot_seconds: float
    break_even_seconds: float  # an idle agent kept for this long costs as much as another one and the waiting for it
    returns: Mapping[str, Returns]  # how soon agents of each level were needed again
    tail_seconds: float
    usd_per_hour: float  # the first offering that may be asked for
    offerings: tuple[Offering, ...]  # not cooled off, in order of preference
    paused: Reason | None
    paused_detail: str

    @property
    def key(self) -> tuple[str, str]:
        """Controller and pool name."""
        return self.controller, self.pool.name

    @property
    def on_hold(self) -> bool:
        """An operator wants nothing launched, brought back or retired here."""
        return self.paused is Reason.HELD

    @property
    def has_floor(self) -> bool:
        """Whether its first controller, this one, sees to agents that are there without demand."""
        return self.controller == self.pool.controllers[0] and bool(self.pool.min_agents or self.pool.warm_executors)

    @property
    def keep(self) -> Keeping:
        """How long agents are kept without demand."""
        wait_usd = self.pool.wait_usd_per_hour * _pause_seconds(self.pool, self.boot_seconds) / 3600.0
        per_second = self.usd_per_hour / 3600.0
        return Keeping(
            returns=self.returns,
            costs=Costs(usd_per_second=per_second, boot_usd=per_second * self.boot_seconds, wait_usd=wait_usd),
            fixed_seconds=self.pool.idle_seconds,
            at_most_seconds=self.pool.max_idle_seconds,
        )

    def agent_usd(self, work_seconds: float, items: int) -> float:
        """What one more agent costs: boot, its share of the work packed on the executors it fills, and its idle tail."""
        filled = max(1, min(items, self.pool.executors))
        return self.usd_per_hour * (self.boot_seconds + work_seconds / filled + self.tail_seconds) / 3600.0

    def extra_usd(self, work_seconds: float, items: int) -> float:
        """What another agent costs more than work that waits for agents there are: boot, idle tail, and executors that it leaves empty."""
        empty = 1.0 - min(items, self.pool.executors) / self.pool.executors
        return self.usd_per_hour * (self.boot_seconds + work_seconds * empty + self.tail_seconds) / 3600.0

    def score(self, duration_seconds: float, start_seconds: float, items: int) -> tuple[float, int, str]:
        """Order pools for an item: dollars of waiting and of running there; ties go to fewer labels, then to the name."""
        wait_usd = self.pool.wait_usd_per_hour * start_seconds / 3600.0
        return wait_usd + self.agent_usd(duration_seconds, items), len(self.pool.labels), self.pool.name

    def market_offerings(self, oldest_seconds: float) -> tuple[Market, tuple[Offering, ...]] | None:
        """Choose one market to ask on: spot while patience lasts, else on-demand; None when everything is cooled off."""
        spot = tuple(o for o in self.offerings if o.market is Market.SPOT)
        firm = tuple(o for o in self.offerings if o.market is Market.ON_DEMAND)
        if spot and (not firm or oldest_seconds < self.pool.spot_patience_seconds + self.pool.queue_maturity_seconds):
            return Market.SPOT, spot
        if firm:
            return Market.ON_DEMAND, firm
        return None


def view_pool(controller: str, pool: Pool, agents: tuple[Agent, ...], memory: Memory, standing: Standing, now: float) -> PoolView:
    """Put together what is known of one pool on one controller."""
    boots = memory.boots.get(pool.name, ())
    boot = _median(boots) if len(boots) >= BOOTS_TO_TRUST else pool.boot_seconds
    cooled = {key for key, cool_off in memory.cool_offs.items() if now < cool_off.until_at}
    offerings = tuple([o for o in pool.offerings if f"{pool.name}/{o.key}" not in cooled]) if cooled else pool.offerings
    usd_per_hour = (offerings or pool.offerings)[0].usd_per_hour
    window = _break_even_seconds(pool, boot, usd_per_hour)
    tails = memory.tails.get(pool.name, ())
    hold = standing.hold_on(controller, pool.name)
    paused, detail = (Reason.HELD, hold.text(now)) if hold else _pause(pool, memory, now)
    return PoolView(
        controller=controller,
        pool=pool,
        agents=agents,
        boot_seconds=boot,
        break_even_seconds=window,
        returns=memory.returns.get(f"{controller}/{pool.name}", {}),
        tail_seconds=sum(tails) / len(tails) if len(tails) >= TAILS_TO_TRUST else window / 2,
        usd_per_hour=usd_per_hour,
        offerings=offerings,
        paused=paused,
        paused_detail=detail,
    )


def _break_even_seconds(pool: Pool, boot_seconds: float, usd_per_hour: float) -> float:
    if pool.idle_seconds is not None:
        return pool.idle_seconds
    renewal = boot_seconds + pool.wait_usd_per_hour / usd_per_hour * _pause_seconds(pool, boot_seconds)
    return min(max(renewal, 60.0), pool.max_idle_seconds)


@lru_cache(maxsize=1000)
def _median(seconds: tuple[float, ...]) -> float:
    return median(seconds)


def _pause_seconds(pool: Pool, boot_seconds: float) -> float:
    """How long a job waits for an agent that is not there."""
    return boot_seconds + pool.queue_maturity_seconds + PASS_SECONDS


def _cooled(memory: Memory, key: str, now: float) -> bool:
    cool_off = memory.cool_offs.get(key)
    return cool_off is not None and now < cool_off.until_at


def _pause(pool: Pool, memory: Memory, now: float) -> tuple[Reason | None, str]:
    for key, reason in ((pool.name, Reason.POOL_PAUSED), ("account", Reason.ACCOUNT_THROTTLED)):
        if _cooled(memory, key, now):
            return reason, f"{memory.cool_offs[key].why}; {memory.cool_offs[key].until_at - now:.0f} s to go"
    breaker = memory.breakers.get(pool.name)
    if breaker is not None and now < breaker.until_at:
        return Reason.BREAKER_OPEN, f"{breaker.failures} boots in a row failed; one is tried again in {breaker.until_at - now:.0f} s"
    return None, ""
