"""One event of the fleet's history: a step that was taken or failed, or an order of a person."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What was done, by which function or person, and why. ``at``: when it was done; ``outcome``: done or failed."""

    at: float
    by: str
    what: str  # the step, or the action of a person
    where: str = ""  # controller/pool
    subject: str = ""  # node, instance, job or count
    reason: str = ""
    detail: str = ""
    outcome: str = "done"
