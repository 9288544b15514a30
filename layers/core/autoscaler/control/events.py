"""Keeps the fleet's history: the steps of each pass with their reasons, which no pass reads."""

from collections.abc import Sequence

from autoscaler.control.report import STEP_NAMES, Result
from autoscaler.domain.facts.plan import Launch, Start
from autoscaler.domain.report.told import Event
from autoscaler.domain.wording import LONGEST_RESULT, shortened
from autoscaler.errors import AutoscalerError
from autoscaler.ports import Ports


def note(ports: Ports, events: Sequence[Event]) -> bool:
    """Add events to the history, and say whether that worked. A failure is logged, and changes nothing of what was done."""
    try:
        ports.history.note(events)
    except AutoscalerError as error:
        ports.log("events_not_noted", count=len(events), error=f"{type(error).__name__}: {error}")
        return False
    return True


def event_of(by: str, result: Result, at: float) -> Event:
    """Make an event of a step that was taken or failed. ``by``: a function or a person."""
    step = result.step
    subject = next((str(named) for name in ("node", "instance_id", "job") if (named := getattr(step, name, None))), "")
    return Event(
        at=at,
        by=by,
        what=STEP_NAMES[type(step)],
        where="/".join(filter(None, (step.controller, getattr(step, "pool", "")))),
        subject=f"{result.count} of {step.count}" if isinstance(step, Launch | Start) else subject,
        reason=str(step.reason),
        detail=shortened("; ".join(filter(None, (step.detail, result.detail))), LONGEST_RESULT),
        outcome=str(result.outcome),
    )
