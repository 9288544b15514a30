"""Reservations: an agent that a person has for a while. Data only, kept in the agent's record and in the launch made for it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Who has an agent, why, and until when. ``by``: who ordered it; ``request``: so that the same request reserves once."""

    person: str
    reason: str
    by: str
    since_at: float
    until_at: float
    request: str

    def is_over(self, now: float) -> bool:
        """Tell whether its time is over: it was released, or it ended by itself."""
        return now >= self.until_at
