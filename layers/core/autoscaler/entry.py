"""What every function does around its pass: read the event, take a turn, report."""

from collections.abc import Callable
from typing import Any, Protocol

from autoscaler import bootstrap
from autoscaler.bootstrap import Runtime
from autoscaler.control import passes
from autoscaler.control.passes import Turn
from autoscaler.control.report import Report, done, merged_json
from autoscaler.domain.metrics import Datum, heartbeat, scaling
from autoscaler.domain.model import Fleet
from autoscaler.domain.plan import Launch, Terminate
from autoscaler.domain.reasons import Reason
from autoscaler.errors import LeaseHeldError, TransientError
from autoscaler.events import Command, read_tick
from autoscaler.ports import Ports
from autoscaler.telemetry import log, log_reports

Reader = Callable[[Any, Fleet], Command]
Pass = Callable[[Ports, Fleet, Turn], list[Report]]


class Context(Protocol):
    """What of Lambda's context is used."""

    @property
    def aws_request_id(self) -> str:
        """The invocation's id."""

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until Lambda cuts the invocation off."""


def scale(function: str, event: Any, context: Context, read: Reader, ordinary: Pass) -> dict[str, Any]:
    """Take the turn of a scaling function; return its plan (design 6.5)."""
    wired = bootstrap.runtime()
    command = read(event, wired.fleet)
    if command.stale(wired.ports.clock()):
        log("stale_tick", function=function)
        return {"skipped": "stale-tick"}
    turn = _turn(wired, context, command)
    try:
        if command.order is None:
            reports = ordinary(wired.ports, wired.fleet, turn)
        else:
            reports = passes.carry_out(wired.ports, wired.fleet, turn, command.order)
    except LeaseHeldError:
        if command.by_a_person:
            raise
        log("lease_held", function=function)
        _publish(wired, scaling(wired.fleet.name, {"LeaseHeld": 1}))
        return {"skipped": "lease-held"}
    log_reports(function, reports)
    if not command.dry_run:
        _publish(wired, _scaling_data(wired.fleet.name, function, reports))
    return merged_json(reports)


def measure(function: str, event: Any, context: Context) -> dict[str, Any]:
    """Take the turn of ``publish_metrics``; return how many metrics there were."""
    wired = bootstrap.runtime()
    command = read_tick(event, wired.fleet)
    if command.stale(wired.ports.clock()):
        log("stale_tick", function=function)
        return {"metrics": 0, "skipped": "stale-tick"}
    turn = _turn(wired, context, command)
    data = passes.publish(wired.ports, wired.fleet, turn)
    if command.dry_run:
        return {"metrics": len(data), "dry_run": True}
    sent = wired.ports.metrics.publish([*data, heartbeat(wired.fleet.name, function)], wired.ports.clock())
    log("measured", function=function, metrics=sent)
    return {"metrics": sent}


def _turn(wired: Runtime, context: Context, command: Command) -> Turn:
    return Turn(
        invocation=context.aws_request_id,
        ends_at=wired.ports.clock() + context.get_remaining_time_in_millis() / 1000.0,
        dry_run=command.dry_run,
        by_a_person=command.by_a_person,
    )


def _scaling_data(fleet: str, function: str, reports: list[Report]) -> list[Datum]:
    results = [result for report in reports for result in report.results]
    held = {(h.controller, h.pool, h.reason) for report in reports for h in report.plan.held}
    failures = [r for r in results if isinstance(r.step, Terminate) and r.step.reason is Reason.BOOT_TIMEOUT]
    counts = {
        "Launches": done(results, Launch),
        "LaunchesHeld": sum(reason in _HOLDS_LAUNCHES for _, _, reason in held),
        "Terminations": done(results, Terminate),
        "BootFailures": done(failures, Terminate),
        "LeaseHeld": 0,
    }
    return [*scaling(fleet, counts), heartbeat(fleet, function)]


_HOLDS_LAUNCHES = {
    Reason.MAX_AGENTS,
    Reason.FLEET_MAX_AGENTS,
    Reason.LAUNCH_RATE,
    Reason.USD_PER_HOUR,
    Reason.USD_PER_MONTH,
    Reason.NO_OFFERING,
    Reason.POOL_PAUSED,
    Reason.ACCOUNT_THROTTLED,
}


def _publish(wired: Runtime, data: list[Datum]) -> None:
    """Send a scaling function's metrics; what it did is done, whether CloudWatch hears of it or not."""
    try:
        wired.ports.metrics.publish(data, wired.ports.clock())
    except TransientError as error:
        log("metrics_not_sent", error=str(error))
