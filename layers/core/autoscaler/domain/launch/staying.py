"""Agents that stay, whatever waits: room is kept only for what fits beside them once all others have left."""

from collections.abc import Iterable
from math import ceil

from autoscaler.domain.facts.fleet import Pool
from autoscaler.domain.facts.metering import Level, hours_in_day, spent_in_month
from autoscaler.domain.facts.snapshot import OfflineCause, Record
from autoscaler.domain.launch.usage import DAY_RESERVE_HOURS, ROUNDING, month_reserve
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.situation import Situation


def staying(situation: Situation) -> list[Record]:
    """Find the agents that nothing makes leave: of people, of pools on hold, which EC2 does not end, and each pool's minimum.

    Which agents make up a minimum, nobody knows yet: the cheapest.
    """
    living = {record.instance_id for record in situation.snapshot.living}
    by_pool: dict[str, list[Agent]] = {}
    for agent in situation.agents:
        if agent.record.instance_id in living and not situation.snapshot.is_off(agent.record):
            by_pool.setdefault(agent.pool.name, []).append(agent)
    return [record for agents in by_pool.values() for record in _staying_of(situation, agents)]


def fits_beside(situation: Situation, records: Iterable[Record], usd_per_hour: float, level: Level) -> bool:
    """Tell whether one more agent at this price fits within a level's limits beside these. Month and day only fill."""
    mine = [record.reserved_usd_per_hour for record in records if level.has(record.pool)]
    limits, usd, agents = level.ceilings, sum(mine) + usd_per_hour, len(mine) + 1
    month = spent_in_month(situation.memory.month, level) + month_reserve(usd)
    day = hours_in_day(situation.memory.day, level, situation.now) + agents * DAY_RESERVE_HOURS
    uses = (
        (agents, limits.max_agents),
        (usd, limits.max_usd_per_hour),
        (month, limits.max_usd_per_month),
        (day, limits.max_hours_per_day),
    )
    return all(used <= limit + ROUNDING for used, limit in uses)


def _staying_of(situation: Situation, agents: list[Agent]) -> list[Record]:
    """Find those of one pool, on all controllers."""
    out_of_use, kept, others = list[Record](), list[Record](), list[Record]()
    for agent in agents:
        group = out_of_use if _is_out_of_use(situation, agent) else kept if _is_kept(situation, agent) else others
        group.append(agent.record)
    others.sort(key=lambda record: record.reserved_usd_per_hour)
    return [*out_of_use, *kept, *others[: max(0, _least(agents[0].pool) - len(kept))]]


def _least(pool: Pool) -> int:
    return max(pool.min_agents, ceil(pool.warm_executors / pool.executors))


def _is_out_of_use(situation: Situation, agent: Agent) -> bool:
    """Tell whether a person has an agent, or EC2 does not end it: it is none of its pool's minimum."""
    by_a_person = agent.phase is Phase.SET_ASIDE and agent.node is not None and agent.node.cause is OfflineCause.PERSON
    kept = agent.record.instance_id in situation.memory.kept or agent.record.instance_id in situation.memory.stuck
    return by_a_person or kept or agent.phase is Phase.RESERVED


def _is_kept(situation: Situation, agent: Agent) -> bool:
    """Tell whether an agent that takes builds is kept by an operator's word."""
    pool = situation.pools.get(agent.key)
    return situation.now < agent.record.keep_until or (agent.phase is Phase.READY and pool is not None and pool.on_hold)
