"""Which people count on a machine that has ended, or was given up, under their reservation, and since when."""

from autoscaler.domain.situation import deadlines
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.situation import Situation

# People are told of such a machine for so long: `publish_metrics` may fail for some minutes.
LOST_SECONDS = 180.0
_ENDED = (deadlines.SHUTS_DOWN.name, deadlines.NODE_LEFT.name)


def lost_since(situation: Situation, agent: Agent) -> float | None:
    """Say since when an agent is given up, or its machine has ended, on which a person counts; None if nobody does, or it lives."""
    reservations, past = (agent.record.reservation, *agent.record.devices_for), situation.memory.rows.get(agent.record.instance_id)
    has_ended = past is not None and past.row in _ENDED  # `publish_metrics` does not ask EC2 for what has ended
    is_lost = has_ended or agent.instance_ended or agent.phase is Phase.CONDEMNED
    if not is_lost or all(reservation is None or reservation.is_over(situation.now) for reservation in reservations):
        return None
    return past.since_at if past and has_ended else situation.now
