"""Stopped agents as supply: which of a pool may be started now, and in which order."""

from autoscaler.domain.facts.fleet import Market, Offering, Pool
from autoscaler.domain.facts.memory import Trial
from autoscaler.domain.facts.snapshot import Instance, InstanceState, RecordState
from autoscaler.domain.launch.backoff import keeps_from_starting
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.canary import is_canary, why_outdated
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.start_trials import asked_lately, is_tripped, most_stopped, starts_late
from autoscaler.domain.situation.trials import of_offering, of_starts, open_trial


def startable(situation: Situation, pool: PoolView) -> list[Agent]:
    """List the stopped agents that may be started, the one that was stopped last at the end: its caches are the freshest.

    None while a start takes too long: the jobs that wait for it have waited long enough, and a launch serves them. Where starts fail,
    one at a time.
    """
    if any(starts_late(situation, agent, pool) for agent in pool.agents):
        return []
    found = [agent for agent in pool.stopped if _may_start(situation, pool, agent)]
    found = sorted(found, key=lambda agent: (agent.record.changed_at, agent.record.instance_id))
    if is_tripped(situation.memory.trials.get(of_starts(pool.name))):
        tried = any(agent.record.state is RecordState.STARTING for agent in pool.agents)
        return [] if tried or not most_stopped(situation.memory, pool.name, situation.now) else found[-1:]
    return found


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
    trial = open_trial(situation.memory, of_offering(pool.name, offering)) if offering else None
    return trial if trial and situation.now < trial.until_at and keeps_from_starting(trial.code) else None


def offering_of(pool: Pool, instance: Instance) -> Offering | None:
    """Find the offering that an on-demand instance was launched from; None where the fleet file has it no more."""
    like = [o for o in pool.offerings if o.instance_type == instance.instance_type and o.market is Market.ON_DEMAND]
    return next((offering for offering in like if offering.subnet in {"", instance.subnet}), None)
