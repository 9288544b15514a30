"""Stopped agents: which drained ones are stopped instead of terminated, and which stopped ones are kept no longer.

A stopped agent runs nothing and has no node: terminating it can cost no build. What is outdated is never kept stopped, nor what is
drained for any other reason than that nothing needs it.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from autoscaler.domain.facts.plan import Held, Stop, Terminate
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import InstanceState
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.breakers import of_starts
from autoscaler.domain.situation.canary import MACHINE_REFUSALS, is_canary, is_tripped, most_stopped, refusals_of, why_outdated
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.situation import Decided, Situation, hold_back, terminate
from autoscaler.domain.situation.warm_pool import (
    count_stopped,
    may_be_stopped,
    most_to_stop,
    most_worth_stopping,
    stopped_wanted,
    why_disk_is_done,
)
from autoscaler.domain.wording import counted, duration, durations_apart


@dataclass(slots=True)
class WarmRoom:
    """How many more agents may be stopped, as a pass decides one after another."""

    situation: Situation
    _stopping: Counter[tuple[str, str]] = field(default_factory=Counter)

    def takes(self, agent: Agent) -> bool:
        """Tell whether a drained agent is worth keeping stopped; it then counts as stopped."""
        is_served = agent.key in self.situation.pools  # by its pool
        if not (is_served and may_be_stopped(self.situation, agent)) or self._left(agent) <= 0:
            return False
        self._stopping[agent.key] += 1
        return True

    def _left(self, agent: Agent) -> int:
        pool, warm = self.situation.pools[agent.key], agent.pool.warm_pool
        elsewhere = sum(self._there(one) for key, one in self.situation.pools.items() if key[1] == pool.name and key != agent.key)
        most = min(warm.max_agents if warm else 0, most_to_stop(self.situation, pool.name)) - elsewhere
        worth = min(stopped_wanted(self.situation, pool), most_worth_stopping(pool))
        return int(min(worth, most)) - self._there(pool)

    def _there(self, pool: PoolView) -> int:
        return count_stopped(pool) + self._stopping[pool.key]


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


def not_worth_keeping(situation: Situation, controller: str, _decided: Decided) -> Iterator[Terminate | Held]:
    """Terminate stopped agents that are too old, outdated, or not worth their disks any more: those stopped first."""
    for pool in situation.pools_of(controller).values():
        there = [agent for agent in pool.stopped if situation.snapshot.states.get(agent.record.instance_id) is InstanceState.STOPPED]
        if there and not pool.on_hold:
            yield from _not_worth_keeping(situation, pool, sorted(there, key=lambda agent: agent.record.changed_at))


def _not_worth_keeping(situation: Situation, pool: PoolView, stopped: list[Agent]) -> Iterator[Terminate | Held]:
    left: list[Agent] = []
    for agent in stopped:
        if why := why_kept_no_longer(situation, pool, agent):
            yield terminate(agent, *why)
        else:
            left.append(agent)
    extra = count_stopped(pool) - len(stopped) + len(left) - stopped_wanted(situation, pool)
    if extra <= 0 or not left:  # those that are about to stop do so first
        return
    window, kept_seconds = situation.memory.windows.get(pool.full_name), pool.keep.seconds_in_all(1)
    watched_seconds = situation.now - window.opened_at if window else 0.0
    if watched_seconds < kept_seconds and most_stopped(situation.memory, pool.name, situation.now) >= count_stopped(pool):
        watched, kept = durations_apart(watched_seconds, kept_seconds)
        yield hold_back(left[0], Reason.WINDOW_OPEN, f"{counted(extra, 'stopped agent')} too many, seen for {watched} of {kept}")
        return
    for agent in left[:extra]:
        yield terminate(agent, *_why_extra(situation, pool, agent))


def _why_extra(situation: Situation, pool: PoolView, agent: Agent) -> tuple[Reason, str]:
    trial = situation.memory.trials.get(of_starts(pool.name))
    if trial is not None and is_tripped(trial):
        return Reason.START_FAILED, f"{trial.failures} starts in a row failed, so that none is kept stopped: {trial.why}"
    hours = duration(situation.now - agent.record.changed_at)
    return Reason.NOT_WORTH_KEEPING, f"stopped for {hours}, and not needed again within the time that its disk pays for"


def why_kept_no_longer(situation: Situation, pool: PoolView, agent: Agent) -> tuple[Reason, str] | None:
    """Say why a stopped agent is kept no longer, however soon it may be needed; None where it may stay."""
    warm, stopped_seconds = pool.spec.warm_pool, situation.now - agent.record.changed_at
    if warm is None:
        return Reason.WARM_POOL_OFF, "this pool keeps no stopped agents now"
    if pool.controller in situation.fleet.slot_controllers:
        return Reason.WARM_POOL_OFF, f"agents of {pool.controller} take static nodes now, which others could not use meanwhile"
    if level := situation.spent_by(pool.name):
        return Reason.USD_PER_MONTH, f"the month's money of {level.text} is spent, and its disk costs some, too"
    if (refusals := refusals_of(situation.memory, agent)) and refusals.times >= MACHINE_REFUSALS:
        return Reason.START_FAILED, f"EC2 refused {refusals.times} times to start it: {refusals.why}"
    if stopped_seconds > warm.max_age_seconds:
        lasted, most = durations_apart(stopped_seconds, warm.max_age_seconds)
        return Reason.WARM_POOL_AGE, f"stopped for {lasted}, at most {most} are wanted"
    if done := why_disk_is_done(situation, agent):
        return done
    # While a new template version is tried out, the old ones are what can be relied on.
    return None if is_canary(situation, pool.name) else why_outdated(situation, agent)
