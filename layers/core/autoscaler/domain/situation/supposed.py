"""Suppose that agents took no builds any more, to see what jobs would want then."""

from collections.abc import Collection
from dataclasses import replace

from autoscaler.domain.memo import Memo
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.situation import Situation


def without_agents(situation: Situation, instance_ids: Collection[str]) -> Situation:
    """Return the same situation, but for these agents, which take no new builds."""
    if not instance_ids:
        return situation

    def supposed(agents: Collection[Agent]) -> tuple[Agent, ...]:
        return tuple([replace(one, phase=Phase.DRAINING) if one.record.instance_id in instance_ids else one for one in agents])

    keys = {agent.key for agent in situation.agents if agent.record.instance_id in instance_ids}
    pools = {key: replace(pool, agents=supposed(pool.agents)) if key in keys else pool for key, pool in situation.pools.items()}
    # What is worked out from what is supposed is not remembered for the next look.
    return replace(situation, agents=supposed(situation.agents), pools=pools, memo=Memo())
