"""Handles EC2's events about an instance, which EventBridge delivers."""

from typing import Annotated, Any

from aws_lambda_powertools.utilities.parser.models import EventBridgeModel
from pydantic import AliasPath, Field, TypeAdapter

from autoscaler import bootstrap
from autoscaler.control import passes
from autoscaler.control.outcomes import Outcome, Report, counts_of, merged_json, places_of_reports
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.lifecycle import Announced, InstanceEvent
from autoscaler.domain.wording import shortened
from autoscaler.entry.events import Context, checked
from autoscaler.entry.invocations import begin, tell_counts
from autoscaler.errors import EventRefusedError, TransientError
from autoscaler.telemetry import log, log_reports

_ANNOUNCED = {
    "EC2 Spot Instance Interruption Warning": Announced.INTERRUPTION,
    "EC2 Instance State-change Notification": Announced.STATE,
}


class _Announcement(EventBridgeModel):
    instance_id: Annotated[str, Field(validation_alias=AliasPath("detail", "instance-id"), pattern=r"^i-[0-9a-f]{8,17}$")]


def handle(function: str, event: Any, context: Context) -> dict[str, Any]:
    """Act on an event of EC2; return the plan. An instance of another fleet is left alone after one read."""
    wired = bootstrap.runtime()
    event = read_instance_event(event)
    reports, at_risk = passes.handle(wired.ports, wired.fleet, begin(wired, context, function), event)
    if not reports:
        return {"skipped": "nothing-to-do"}
    log_reports(function, reports)
    if at_risk:
        log("builds_at_risk", instance_id=event.instance_id, announced=str(event.kind), count=len(at_risk), builds=list(at_risk))
    if event.kind is Announced.STATE:
        tell_counts(wired, "instance_events", {"StartsFailed": counts_of(reports)["StartsFailed"]}, places_of_reports(reports))
    else:
        tell_counts(wired, "instance_events", {"BuildsAtRisk": len(at_risk)})
        _fail_if_undone(reports)
    return merged_json(reports)


def read_instance_event(event: Any) -> InstanceEvent:
    """Read an event of EC2."""
    announcement = checked(TypeAdapter(_Announcement), event)
    kind = _ANNOUNCED.get(announcement.detail_type)
    if kind is None:
        given = shortened(announcement.detail_type)
        raise EventRefusedError(f"event refused: detail-type ({given}): must be one of {', '.join(_ANNOUNCED)}")
    return InstanceEvent(kind=kind, instance_id=announcement.instance_id)


def _fail_if_undone(reports: list[Report]) -> None:
    """Raise an error so that Lambda tries again: no later pass can see that an interruption was announced."""
    for report in reports:
        failed = [result.detail for result in report.results if result.outcome is Outcome.FAILED]
        unseen = [held.detail for held in report.plan.held if held.reason is Reason.INCOMPLETE]
        if failed or unseen:
            raise TransientError(f"the announcement was not acted on: {'; '.join(failed or unseen)}")
