"""Keeps the fleet's history: the steps of each pass with their reasons, a day in one item that no pass reads."""

from collections.abc import Iterable

from autoscaler.control.report import STEP_NAMES, Outcome, Report, Result
from autoscaler.domain.facts.plan import Launch, Start
from autoscaler.domain.report.event import Event
from autoscaler.errors import AutoscalerError
from autoscaler.ports import Ports


def note(ports: Ports, events: list[Event]) -> None:
    """Add events to the history. What is done is done, whether the history hears of it or not."""
    if not events:
        return
    try:
        ports.history.note(events)
    except AutoscalerError as error:
        ports.log("events_not_noted", count=len(events), error=f"{type(error).__name__}: {error}")


def events_of(by: str, reports: Iterable[Report]) -> list[Event]:
    """Make an event of each step that was taken or failed. ``by``: a function or a person."""
    told = (Outcome.DONE, Outcome.FAILED)
    return [_event(by, report, result) for report in reports for result in report.results if result.outcome in told]


def _event(by: str, report: Report, result: Result) -> Event:
    step = result.step
    subject = next((str(named) for name in ("node", "instance_id", "job") if (named := getattr(step, name, None))), "")
    return Event(
        at=report.plan.taken_at,
        by=by,
        what=STEP_NAMES[type(step)],
        where="/".join(filter(None, (step.controller, getattr(step, "pool", "")))),
        subject=f"{result.count} of {step.count}" if isinstance(step, Launch | Start) else subject,
        reason=str(step.reason),
        detail="; ".join(filter(None, (step.detail, result.detail))),
        outcome=str(result.outcome),
    )
