"""What a person orders, beyond what the scaling functions take."""

from dataclasses import asdict
from typing import Any

from autoscaler import bootstrap
from autoscaler.bootstrap import Runtime
from autoscaler.control import operate, passes
from autoscaler.control.doctor import examine
from autoscaler.control.invocation import Invocation
from autoscaler.control.report import Report, merged_json
from autoscaler.domain.facts.orders import Purge, Resume
from autoscaler.entry.context import Context
from autoscaler.entry.once import once
from autoscaler.operations import Ask, Asked, Change, Examine, LookAhead, LookAround, read_operation
from autoscaler.telemetry import log, log_reports


def obey(function: str, event: Any, context: Context) -> dict[str, Any]:
    """Do what was asked for; return what was done, and what stands."""
    wired = bootstrap.runtime()
    now = wired.ports.clock()
    asked = read_operation(event, wired.fleet, now)
    ends_at = now + context.get_remaining_time_in_millis() / 1000.0
    invocation = Invocation(request_id=context.aws_request_id, ends_at=ends_at, dry_run=asked.dry_run, by_a_person=True)
    is_order = not isinstance(asked.operation, LookAhead | LookAround | Ask | Examine)
    if is_order and asked.request_id and not asked.dry_run:
        answer = once(asked.request_id, context, lambda: _told(function, wired, invocation, asked))
    elif is_order:
        answer = _told(function, wired, invocation, asked)
    else:
        answer, _ = _done(wired, invocation, asked)
    return {"action": asked.action, "dry_run": asked.dry_run} | answer


def _told(function: str, wired: Runtime, invocation: Invocation, asked: Asked) -> dict[str, Any]:
    """Do it, and say in the log who wanted it and why."""
    answer, reports = _done(wired, invocation, asked)
    log("operated", action=asked.action, by=asked.by, reason=asked.reason, dry_run=asked.dry_run)
    log_reports(function, reports)
    return answer


def _done(wired: Runtime, invocation: Invocation, asked: Asked) -> tuple[dict[str, Any], list[Report]]:
    ports, fleet = wired.ports, wired.fleet
    match asked.operation:
        case Change():
            return operate.as_json(operate.change(ports, invocation, asked.operation.of)), []
        case Resume():
            overrides, reports = operate.lift(ports, fleet, invocation, asked.operation)
            return operate.as_json(overrides) | {"plan": merged_json(reports)}, reports
        case Purge():
            reports = operate.purge(ports, fleet, invocation, asked.operation)
            return {"plan": merged_json(reports)}, reports
        case LookAhead():
            reports = operate.plan(ports, fleet, invocation)
            return _what_stands(wired) | {"plan": merged_json(reports)}, reports
        case LookAround():
            return _what_stands(wired) | {"status": asdict(operate.status(ports, fleet, invocation))}, []
        case Examine():
            return {"findings": [asdict(finding) for finding in examine(ports, bootstrap.account(), fleet, invocation)]}, []
        case Ask():
            return {"subject": asked.operation.subject, "facts": operate.why(ports, fleet, invocation, asked.operation.subject)}, []
        case _:
            reports = passes.carry_out(ports, fleet, invocation, asked.operation)
            return {"plan": merged_json(reports)}, reports


def _what_stands(wired: Runtime) -> dict[str, Any]:
    return operate.as_json(wired.ports.state.read().overrides.at(wired.ports.clock()))
