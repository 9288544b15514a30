"""Tells people how much of an agent its builds take, where jobs have weights."""

from autoscaler.domain.facts.nodes import room_on
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import counted


def told_weights(situation: Situation, agent: Agent) -> str:
    """Say what the builds on an agent weigh, and what fits beside them; "" where no job has a weight, or nothing runs there."""
    room = room_on(agent.record, agent.node, situation.fleet) if agent.node and agent.node.builds else None
    if room is None:
        return ""
    weigh = f"its builds weigh {room.taken} of {room.of}"
    return f"{weigh}: it takes no further ones" if room.is_full else f"{weigh}: {counted(room.of - room.taken, 'executor')} left"
