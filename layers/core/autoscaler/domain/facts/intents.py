"""Intents: launches, each written down before it is sent."""

from dataclasses import dataclass
from enum import StrEnum

from autoscaler.domain.facts.reservations import Reservation


class IntentState(StrEnum):
    """``written -> sent -> settled``."""

    WRITTEN = "written"
    SENT = "sent"
    SETTLED = "settled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """A launch, written down before the call: the exact request with its client token."""

    id: str
    state: IntentState
    pool: str
    controller: str
    count: int
    usd_per_hour: float  # the most that an agent on the dearest offering asked for may cost: reserved
    request: str  # what is sent, byte for byte
    created_at: float
    keep_until: float
    instances: tuple[str, ...]
    empty_look_at: float | None
    version: str = ""  # that is launched, where the pool names an image's parameter
    reservation: Reservation | None = None  # of the person that it is launched for

    @property
    def open(self) -> bool:
        """Its outcome is not known yet."""
        return self.state is not IntentState.SETTLED
