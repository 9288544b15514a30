"""Stopped agents as supply: which of a pool may be started now, and in which order."""

from autoscaler.domain.facts.fleet import Market, Offering, Pool
from autoscaler.domain.facts.snapshot import Instance, InstanceState
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.canary import is_canary, why_outdated
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.warm_pool import may_be_kept_stopped


def startable(situation: Situation, pool: PoolView) -> list[Agent]:
    """List the stopped agents that may be started, the one that was stopped last at the end: its caches are the freshest."""
    found = [agent for agent in pool.stopped if _may_start(situation, pool, agent)]
    return sorted(found, key=lambda agent: (agent.record.changed_at, agent.record.instance_id))


def _may_start(situation: Situation, pool: PoolView, agent: Agent) -> bool:
    """Tell whether EC2 shows it stopped, does not lack machines for it, and would not launch something newer instead."""
    instance = situation.instances.get(agent.record.instance_id)
    if instance is None or instance.state is not InstanceState.STOPPED:
        return False
    if not may_be_kept_stopped(agent):
        return False
    if why_outdated(situation, agent) and not is_canary(situation, pool.name):
        return False
    offering = offering_of(pool.spec, instance)
    return offering is None or offering in pool.offerings


def offering_of(pool: Pool, instance: Instance) -> Offering | None:
    """Find the offering that an on-demand instance was launched from; None where the fleet file has it no more."""
    like = [o for o in pool.offerings if o.instance_type == instance.instance_type and o.market is Market.ON_DEMAND]
    return next((offering for offering in like if offering.subnet in {"", instance.subnet}), None)
