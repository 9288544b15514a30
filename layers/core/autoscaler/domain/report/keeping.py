"""Why an idle agent is still there: what keeping it costs and spares, by the very values that scaling in uses."""

from autoscaler.domain.forecast.keeping import needed_lately
from autoscaler.domain.scale_in.surplus import floor_here, free_to_go, least_kept, least_missed
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import counted, dollars, duration

_QUARTER_SECONDS = 900.0


def why_kept(situation: Situation, agent: Agent) -> str | None:
    """Say why an idle agent is kept; None where it is busy, marked or not known to be idle."""
    since = situation.memory.idle_since.get(agent.record.instance_id)
    if agent.phase is not Phase.READY or not agent.idle or since is None:
        return None
    pool = situation.pools.get(agent.key)
    if pool is None or not (pool.window and pool.window.peaks):
        return None
    return f"kept: idle for {duration(situation.now - since)}, {_because(situation, pool, agent)}"


def _because(situation: Situation, pool: PoolView, agent: Agent) -> str:
    if situation.now < agent.record.keep_until:
        return f"and a person wants it kept for another {duration(agent.record.keep_until - situation.now)}"
    if pool.on_hold:
        return f"and {pool.paused_detail}"
    if situation.protected(agent):
        return "and a build may be bound to it: a queue item waits for it by name, or it was busy before a restart"
    if not free_to_go(situation, [agent]):
        return "and jobs wait that it did not take so far: some agents take none for minutes after they connected"
    order = [one.record.instance_id for one in least_missed(situation, pool.ready)]
    number = len(order) - order.index(agent.record.instance_id)  # which agent of its pool it is: the first is missed most, and goes last
    return _by_need(situation, pool, number) or _worth(situation, pool, number)


def _by_need(situation: Situation, pool: PoolView, number: int) -> str | None:
    if number <= floor_here(situation, pool):
        return f"and the pool keeps {counted(pool.spec.min_agents, 'agent')} in any case (min_agents)"
    if number <= situation.memory.windows[pool.full_name].peaks[-1][1]:
        return "and needed now"
    return f"and {situation.forecasts(pool.controller)[pool.name].why}" if number <= least_kept(situation, pool) else None


def _worth(situation: Situation, pool: PoolView, number: int) -> str:
    """Set the price of keeping against what a boot costs, as `Keeping` does, and say for how long that pays."""
    keep, costs, window = pool.keep, pool.keep.costs, situation.memory.windows[pool.full_name]
    if situation.now - window.opened_at >= keep.seconds(number) and needed_lately(window, keep.seconds, situation.now) < number:
        return "and not needed any more: it goes as soon as nothing else is in the way"
    if keep.fixed_seconds is not None:
        return f"kept for {duration(keep.fixed_seconds)} after it was last needed (idle_seconds)"
    quarter, kept, stopped = costs.usd_per_second * _QUARTER_SECONDS, duration(keep.seconds(number)), keep.stopped
    what, usd, wait_usd, stays = "boot", costs.boot_usd, costs.wait_usd, "is kept"
    if stopped is not None and keep.seconds_in_all(number) > keep.seconds(number):
        what, usd, wait_usd, stays = "start", stopped.start_usd, stopped.wait_usd, "is kept running"
    against = f"a {what} of {dollars(usd + wait_usd)} ({dollars(wait_usd)} of it waiting)"
    price = f"worth {dollars(quarter)} a quarter of an hour against {against}"
    return f"{price}; agent {number} of {pool.name} {stays} for {kept} after it was last needed"
