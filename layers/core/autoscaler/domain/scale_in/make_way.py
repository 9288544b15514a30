"""Stopped agents make way: each holds an address of its subnet, and volumes of the account's quota, which a launch may lack."""

from collections.abc import Iterator
from math import ceil

from autoscaler.domain.facts.memory import Trial
from autoscaler.domain.facts.plan import Terminate
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import InstanceState
from autoscaler.domain.launch.backoff import held_by_what_is_stopped
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.steps import Decided, terminate
from autoscaler.domain.situation.trials import in_the_way, of_offering

# Since the last look: each refusal ends as many as the jobs need, once.
_JUST_NOW_SECONDS = 90.0


def make_way(situation: Situation, decided: Decided) -> Iterator[Terminate]:
    """Terminate stopped agents that no job waits for, those stopped first, if EC2 has just refused a launch for what they hold."""
    gone = {step.instance_id for step in decided if isinstance(step, Terminate)}
    for pool in situation.pools.values():
        starved = situation.starved_by_pool(pool.controller).get(pool.name, 0)
        if not starved:
            continue
        for subnet, trial in _lacking(situation, pool).items():
            holders = [agent for agent in _holders(situation, subnet) if agent.record.instance_id not in gone]
            for agent in holders[: ceil(starved / pool.executors)]:
                gone.add(agent.record.instance_id)
                yield terminate(agent, Reason.MAKES_WAY, f"jobs wait for {pool.name}, and a launch failed: {trial.why}")


def _lacking(situation: Situation, pool: PoolView) -> dict[str, Trial]:
    """Return what launches of a pool have just lacked, by subnet; "" for what all subnets share."""
    trials = in_the_way(pool.spec, situation.memory)
    just_now = {scope: trial for scope, trial in trials.items() if situation.now - trial.failed_at < _JUST_NOW_SECONDS}
    subnets = {of_offering(pool.name, offering): offering.subnet for offering in pool.spec.offerings}
    shared = next((trial for trial in just_now.values() if held_by_what_is_stopped(trial.code, everywhere=True)), None)
    if shared is not None:
        return {"": shared}
    return {subnets.get(scope, ""): trial for scope, trial in just_now.items() if held_by_what_is_stopped(trial.code)}


def _holders(situation: Situation, subnet: str) -> list[Agent]:
    """List the stopped agents in a subnet that no waiting job may be served by, those that were stopped first at the beginning."""
    wanted = {pool.key for pool in situation.pools.values() if situation.starved_by_pool(pool.controller).get(pool.name, 0)}
    free = [
        pool for pool in situation.pools.values() if not (pool.key in wanted or pool.on_hold or situation.no_giving_up(pool.controller))
    ]
    stopped = [agent for pool in free for agent in pool.stopped]
    return sorted((agent for agent in stopped if _holds(situation, agent, subnet)), key=lambda agent: agent.record.changed_at)


def _holds(situation: Situation, agent: Agent, subnet: str) -> bool:
    instance = situation.instances.get(agent.record.instance_id)
    return instance is not None and instance.state is InstanceState.STOPPED and subnet in {"", instance.subnet}
