"""Steps about what people have for a while: an agent, or a device of a machine."""

from dataclasses import dataclass

from autoscaler.domain.facts.marks import Mark
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.reservations import Reservation


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve:
    """Reserve an agent for a person, and cordon it for good. ``though_busy``: its builds go on, the person has it after them.

    ``replaces``: the mark of ours that it carries.
    """

    controller: str
    pool: str
    node: str
    instance_id: str
    reservation: Reservation
    mark: Mark
    replaces: Mark | None
    though_busy: bool
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReserveDevice:
    """Reserve one device of a machine for a person. Builds go on beside it."""

    controller: str
    pool: str
    node: str
    instance_id: str
    reservation: Reservation
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EndReservation:
    """Set when a reservation ends: now, sooner or later than before. ``person``: of a device; "": of the agent."""

    controller: str
    pool: str
    node: str | None
    instance_id: str
    until_at: float
    person: str = ""
    reason: Reason
    detail: str
