"""What EC2 announces, by way of EventBridge."""

from typing import Any

from autoscaler import bootstrap
from autoscaler.control import passes
from autoscaler.control.invocation import Invocation
from autoscaler.control.report import Outcome, Report, merged_json
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.repair.interruption import Announced
from autoscaler.domain.report.metrics import scaling
from autoscaler.entry.context import Context
from autoscaler.entry.sending import send
from autoscaler.errors import TransientError
from autoscaler.events import read_instance_event
from autoscaler.telemetry import log, log_reports


def handle(function: str, event: Any, context: Context) -> dict[str, Any]:
    """Act on an announcement of EC2; return the plan. An instance of nobody here is left after one read."""
    wired = bootstrap.runtime()
    event = read_instance_event(event)
    ends_at = wired.ports.clock() + context.get_remaining_time_in_millis() / 1000.0
    reports, at_risk = passes.handle(wired.ports, wired.fleet, Invocation(request_id=context.aws_request_id, ends_at=ends_at), event)
    if not reports:
        return {"skipped": "nothing-to-do"}
    log_reports(function, reports)
    if at_risk:
        log("builds_at_risk", instance_id=event.instance_id, announced=str(event.kind), count=len(at_risk), builds=list(at_risk))
    if event.kind is not Announced.STATE:
        send(wired, scaling(wired.fleet.name, {"BuildsAtRisk": len(at_risk)}))
        _fail_if_undone(reports)
    return merged_json(reports)


def _fail_if_undone(reports: list[Report]) -> None:
    """Let Lambda try again: no later look shows that an instance was announced to go, so nobody else would make this good."""
    for report in reports:
        failed = [result.detail for result in report.results if result.outcome is Outcome.FAILED]
        unseen = [held.detail for held in report.plan.held if held.reason is Reason.INCOMPLETE]
        if failed or unseen:
            raise TransientError(f"the announcement was not acted on: {'; '.join(failed or unseen)}")
