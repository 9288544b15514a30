"""Retire: cordon what was not needed at any time inside the break-even window. Reversible, and free."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from autoscaler.domain.facts.marks import MarkClass
from autoscaler.domain.facts.memory import Growth, IdleReturns, Window
from autoscaler.domain.facts.plan import Cordon, Held
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import LOOK_GAP_SECONDS
from autoscaler.domain.forecast.forecast import NOTHING, Forecast, note_growth
from autoscaler.domain.forecast.idle_returns import (
    Needed,
    agents_missed,
    follow_burst,
    guessed_in_time,
    is_burst_over,
    needed_lately,
    note_returns,
)
from autoscaler.domain.launch.canary import why_outdated
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.steps import cordon
from autoscaler.domain.situation.supply import agent_remaining_seconds


def next_peaks(window: Window | None, needed: int, now: float, length_seconds: float) -> tuple[tuple[float, int], ...]:
    """Record what is needed now; what was needed less, or too long ago, says nothing any more."""
    kept = [peak for peak in window.peaks if peak[0] >= now - length_seconds] if window else []
    while kept and kept[-1][1] <= needed:
        kept.pop()
    return *kept, (now, needed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What a look at one pool leaves: its window, and what its bursts have taught so far."""

    window: Window
    idle_returns: Mapping[str, IdleReturns]
    growths: tuple[Growth, ...]


def watch(situation: Situation, controller: str, foreseen: Mapping[str, Forecast]) -> dict[str, Watched]:
    """Record what each pool needs now, and learn from what is needed again; a view that cannot be believed does neither."""
    if situation.no_giving_up(controller):
        return {}
    starved = situation.starved_by_pool(controller)
    return {
        pool.full_name: _look_on(pool, _needed(pool, starved.get(name, 0), foreseen.get(name, NOTHING)))
        for name, pool in situation.pools_of(controller).items()
    }


def _needed(pool: PoolView, starved: int, foreseen: Forecast) -> Needed:
    return Needed(present=pool.in_use(starved), foreseen=foreseen.stages, guessed=foreseen.executors - foreseen.stages)


def _look_on(pool: PoolView, needed: Needed) -> Watched:
    executors, boot, now = pool.executors, pool.boot_seconds, pool.now
    before = pool.window
    longest = max(pool.spec.idle_seconds or 0.0, pool.spec.max_idle_seconds)
    window = Window(
        # A gap between passes starts it again: nobody knows what was needed meanwhile. What was before is not forgotten.
        opened_at=before.opened_at if before and now - before.seen_at <= LOOK_GAP_SECONDS else now,
        seen_at=now,
        peaks=next_peaks(before, needed.agents(executors), now, longest),
        guessed=guessed_in_time(before, needed, boot, now),
        burst=follow_burst(before, needed, now, executors=executors, boot_seconds=boot),
    )
    burst = before.burst if before else None
    if burst is None or not is_burst_over(burst, now, boot):
        return Watched(window=window, idle_returns=pool.idle_returns, growths=pool.growths)
    missed = agents_missed(burst, executors=executors, boot_seconds=boot)
    return Watched(window=window, idle_returns=note_returns(pool.idle_returns, missed), growths=note_growth(pool.growths, burst))


def surplus(situation: Situation, pool: PoolView, windows: Mapping[str, Window], foreseen: Forecast) -> list[Cordon | Held]:
    """Choose which ready agents of a pool to cordon, idle longest first, then least work left."""
    ready = [agent for agent in pool.agents if agent.phase is Phase.READY]
    if not ready:
        return []
    window = windows[pool.full_name]
    least = _least(situation, pool, window, foreseen)
    if len(ready) <= least:
        return []
    keeping = pool.keep
    most = max(needed_lately(window, keeping, situation.now), least)
    extra = len(ready) - most
    if extra <= 0:
        return []
    if pool.on_hold:
        return [
            Held(pool=pool.name, controller=pool.controller, reason=Reason.HELD, detail=f"{extra} agents too many; {pool.paused_detail}")
        ]
    minutes, keep = (situation.now - window.opened_at) / 60, keeping.seconds(most + 1) / 60
    if minutes < keep:
        detail = f"{extra} agents seem too many, seen for {minutes:.0f} of {keep:.0f} min"
        return [Held(pool=pool.name, controller=pool.controller, reason=Reason.WINDOW_OPEN, detail=detail)]
    detail = f"no more than {most} of {len(ready)} agents were needed at once for {keep:.0f} min"
    chosen = least_missed(situation, _free_to_go(situation, ready))[:extra]
    return [cordon(situation, agent, MarkClass.RETIRE, Reason.SURPLUS, detail) for agent in chosen]


def idle_beyond_need(situation: Situation, pool: PoolView, windows: Mapping[str, Window], foreseen: Forecast) -> list[Agent]:
    """Choose the agents that stand idle and are there only for what may come back: as many as are not needed now, nor soon."""
    ready = [agent for agent in pool.agents if agent.phase is Phase.READY]
    idle = [agent for agent in _free_to_go(situation, ready) if agent.idle]
    if not idle or pool.on_hold:
        return []
    return least_missed(situation, idle)[: max(0, len(ready) - _least(situation, pool, windows[pool.full_name], foreseen))]


def _least(situation: Situation, pool: PoolView, window: Window, foreseen: Forecast) -> int:
    """How many agents stay, whatever is learned: those needed now or for what is foreseen, and the pool's minimum."""
    soon = window.peaks[-1][1] + ceil((foreseen.executors - foreseen.stages) / pool.executors)
    return max(_floor(situation, pool), soon)


def _free_to_go(situation: Situation, agents: list[Agent]) -> list[Agent]:
    return [a for a in agents if not situation.protected(a) and situation.now >= a.record.keep_until]


def least_missed(situation: Situation, agents: list[Agent]) -> list[Agent]:
    """Order agents by how little is lost with them: outdated first, idle longest, then the smallest sum of remaining durations."""

    def loss(agent: Agent) -> tuple[bool, float, float, str]:
        instance_id = agent.record.instance_id
        wanted = why_outdated(situation, agent) is None
        if agent.idle:
            return wanted, 0.0, situation.memory.idle_since.get(instance_id, situation.now), instance_id
        return wanted, 1.0, sum(agent_remaining_seconds(situation, agent)), instance_id

    return sorted(agents, key=loss)


def _floor(situation: Situation, pool: PoolView) -> int:
    """The pool's minimum, less what other controllers have of it."""
    if not pool.spec.min_agents:
        return 0
    elsewhere = sum(
        agent.phase is Phase.READY
        for agent in situation.agents
        if agent.pool.name == pool.name and agent.record.controller != pool.controller
    )
    return max(0, pool.spec.min_agents - elsewhere)
