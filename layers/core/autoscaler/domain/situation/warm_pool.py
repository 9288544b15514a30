"""The warm pool: which agents may be stopped, how many stopped ones are worth having, and how many there are."""

from math import inf

from autoscaler.domain.facts.fleet import Market
from autoscaler.domain.facts.nodes import MarkClass, keeps_static_nodes_from_others
from autoscaler.domain.facts.snapshot import Instance
from autoscaler.domain.forecast.keeping import needed_lately
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.boot_times import BOOTS_TO_TRUST, STARTS_TO_DOUBT
from autoscaler.domain.situation.canary import is_launched_meanwhile, why_outdated
from autoscaler.domain.situation.disks import why_disk_is_done
from autoscaler.domain.situation.pool_view import STARTS_TAKE_SHARE, PoolView
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.start_trials import is_proven, most_stopped

_IN_SERVICE = (Phase.READY, Phase.REQUESTED, Phase.CONNECTING)
# Marks of what is drained since nothing needs it, or since it may not run today.
_NOT_NEEDED = (MarkClass.RETIRE, MarkClass.DAY_LIMIT)
_DRAINED = (Phase.RETIRING, Phase.DRAINING)
_STOPPED_SOON = (Phase.STOPPED, Phase.STOPPING)


def may_be_stopped(situation: Situation, agent: Agent) -> bool:
    """Tell whether an agent can be stopped, and its operator lets us."""
    record, instance = agent.record, situation.instances.get(agent.record.instance_id)
    if instance is None or not _is_able(instance) or agent.pool.warm_pool is None or record.instance_id in situation.memory.unstoppable:
        return False
    is_surplus = record.reservation is None and (agent.mark is None or agent.mark.kind in _NOT_NEEDED)
    # A static node is its operator's, for one of their few agents: a stopped one would keep it from the others.
    is_ours = not keeps_static_nodes_from_others(situation.fleet, record)
    is_wanted = is_launched_meanwhile(situation, agent) or not why_outdated(situation, agent)
    is_fit = why_disk_is_done(situation, agent) is None
    return is_surplus and is_ours and situation.spent_by(agent.pool.name) is None and is_wanted and is_fit


def _is_able(instance: Instance) -> bool:
    """Tell whether EC2 stops an instance, and its root outlives that."""
    return instance.keeps_disk and instance.market == Market.ON_DEMAND


def count_stopped(pool: PoolView) -> int:
    """Count its agents that are stopped, or are about to be."""
    return sum(agent.phase in _STOPPED_SOON and not agent.instance_ended for agent in pool.agents)


def stopped_wanted(situation: Situation, pool: PoolView) -> int:
    """Count the stopped agents that are worth having beside those that run, within what its operator allows on all controllers."""
    warm, window = pool.spec.warm_pool, situation.memory.windows.get(pool.full_name)
    if warm is None:
        return 0
    needed = needed_lately(window, pool.keep.seconds_in_all, situation.now) if window else 0
    worth = max(needed - in_service(pool), pool.least_stopped)
    return int(min(worth, warm.max_agents, most_stopped(situation.memory, pool.name, situation.now)))


def least_stopped(situation: Situation, pool: PoolView) -> int:
    """Count the stopped agents that its operator wants, as far as starts are known to work."""
    return int(min(pool.least_stopped, most_to_stop(situation, pool.name)))


def starts_to_time(pool: PoolView) -> int | None:
    """Count the starts to be timed before a pool stops as many agents as may be needed again; None once enough were.

    If starts are no quicker than boots, the disks of many would cost money for nothing. If even the quickest of the first few took longer
    than was believed, that is likely, and more are timed before many are stopped.
    """
    timed = len(pool.memory.starts.get(pool.name, ()))
    is_slow = timed >= STARTS_TO_DOUBT and pool.start_seconds > STARTS_TAKE_SHARE * pool.boot_seconds
    needed = BOOTS_TO_TRUST if is_slow else STARTS_TO_DOUBT
    return needed if timed < needed else None


def most_worth_stopping(pool: PoolView) -> float:
    """Say how many agents a pool may stop at once because they may be needed again: not many before enough starts were timed."""
    starts = starts_to_time(pool)
    return inf if starts is None else max(starts, pool.least_stopped)


def is_start_to_prove(situation: Situation, pool: PoolView) -> bool:
    """Tell whether its operator wants more stopped agents than one, and it is not known that such a one starts again, nor is it tried.

    An agent of an older template version would say nothing of the present one.
    """
    current = situation.current.get(pool.name)
    works = is_proven(situation.memory, pool.name, current) and most_stopped(situation.memory, pool.name, situation.now) > 1
    if pool.least_stopped <= 1 or works:
        return False
    if not any(not current or situation.version_of(agent) == current for agent in pool.stopped):
        return False
    return not any(agent.record.life and agent.phase is not Phase.STOPPED for agent in pool.agents)


def most_to_stop(situation: Situation, pool: str) -> float:
    """Say how many agents may be stopped at once, all controllers together: one of this template version until one has started again.

    Those of older versions stay beside it until this one has proved itself.
    """
    current = situation.current.get(pool)
    most = most_stopped(situation.memory, pool, situation.now)
    if is_proven(situation.memory, pool, current):
        return most
    stopped = (agent for agent in situation.agents if agent.pool.name == pool and agent.phase is Phase.STOPPED)
    return min(most, 1 + sum(situation.version_of(agent) != current for agent in stopped))


def stopped_in_time(situation: Situation, pool: PoolView) -> int:
    """Count the agents that are stopped, and those that will be once nothing needs them: all that run, but for those that always do.

    Launches that were not answered yet count as agents.
    """
    stopped = count_stopped(pool) + _about_to_stop(situation, pool)
    coming = sum(agents for name, _, agents in situation.expected(pool.controller) if name == pool.name)
    return stopped + max(0, in_service(pool) + coming - pool.spec.min_agents)


def _about_to_stop(situation: Situation, pool: PoolView) -> int:
    """Count the agents that are out of use since nothing needs them, and that are stopped once a second look shows them idle."""
    return sum(agent.phase in _DRAINED and may_be_stopped(situation, agent) and not agent.instance_ended for agent in pool.agents)


def in_service(pool: PoolView) -> int:
    """Count its agents that take builds, or will."""
    return sum(agent.phase in _IN_SERVICE and not agent.instance_ended for agent in pool.agents)
