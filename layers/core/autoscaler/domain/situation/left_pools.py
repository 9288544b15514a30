"""Agents whose pool left the fleet file, or does not serve their controller any more: which they are, and since when."""

from autoscaler.domain.facts.memory import LeftPools, Memory
from autoscaler.domain.facts.metering import HOUR_SECONDS
from autoscaler.domain.facts.pools import next_definitions
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.situation import Look, Situation


def next_left_pools(memory: Memory, look: Look) -> LeftPools:
    """Carry on the last definitions of pools, and since when agents have none.

    If more than half of the fleet's agents lose their pool within an hour, the file is more likely wrong than meant: nothing of it is
    drained for an hour.
    """
    before, now, snapshot = memory.left_pools, look.now, look.snapshot
    living = [agent for agent in look.agents if agent.record.is_instance and not agent.instance_ended]
    without_pool = [agent.record.instance_id for agent in living if is_left(agent)]
    since = {name: min(before.since.get(name, now), now) for name in without_pool}
    lately = sum(now - at < HOUR_SECONDS for at in since.values())
    is_new = since.keys() - before.since.keys()
    return LeftPools(
        definitions=next_definitions(before.definitions, look.fleet, snapshot.records, snapshot.intents, snapshot.instances),
        since=since,
        hold_until=now + HOUR_SECONDS if is_new and lately * 2 > len(living) else min(before.hold_until, now + HOUR_SECONDS),
    )


def is_left(agent: Agent) -> bool:
    """Tell whether the pool of an agent left the fleet file, or does not serve its controller any more."""
    return agent.pool.has_left


def is_controller_left(situation: Look, controller: str) -> bool:
    """Tell whether the fleet file does not name a controller any more: nobody sees its builds."""
    return controller not in situation.snapshot.controllers


def is_on_hold(situation: Situation, agent: Agent) -> bool:
    """Tell whether an agent without a pool is not drained yet, since most of the fleet's agents lost theirs at once."""
    return is_left(agent) and situation.now < situation.memory.left_pools.hold_until
