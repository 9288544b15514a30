"""What the functions on the schedule do around their passes: read the event, take one look or several, report."""

from collections.abc import Callable, Iterator
from math import ceil
from typing import Any

from autoscaler import bootstrap
from autoscaler.bootstrap import Runtime
from autoscaler.control import passes, study
from autoscaler.control.invocation import Invocation
from autoscaler.control.report import Outcome, Report, Result, done, merged_json
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.marks import MarkClass
from autoscaler.domain.facts.plan import Cordon, Launch, Terminate
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import MINUTE_SECONDS
from autoscaler.domain.report.datum import Datum
from autoscaler.domain.report.metrics import heartbeat, scaling
from autoscaler.entry.context import Context
from autoscaler.entry.sending import send
from autoscaler.errors import LeaseHeldError, TransientError
from autoscaler.events import Command, read_tick
from autoscaler.ports import Ports
from autoscaler.telemetry import log, log_reports

# Looking several times a minute, no look is begun with less time left than this: it could not act any more.
LAST_LOOK_SECONDS = 12.0

Reader = Callable[[Any, Fleet], Command]
Pass = Callable[[Ports, Fleet, Invocation], list[Report]]


def scale(function: str, event: Any, context: Context, read: Reader, ordinary: Pass) -> dict[str, Any]:
    """Take the turn of a scaling function; return its plan (design 6.5)."""
    wired = bootstrap.runtime()
    command = read(event, wired.fleet)
    if command.stale(wired.ports.clock()):
        log("stale_tick", function=function)
        return {"skipped": "stale-tick"}
    reports: list[Report] = []
    _each_look(wired, context, command, lambda invocation: reports.extend(_scale_once(function, wired, invocation, command, ordinary)))
    return merged_json(reports) if reports else {"skipped": "lease-held"}


def measure(function: str, event: Any, context: Context) -> dict[str, Any]:
    """Take the turn of ``publish_metrics``; return how many metrics there were."""
    wired = bootstrap.runtime()
    command = read_tick(event, wired.fleet)
    if command.stale(wired.ports.clock()):
        log("stale_tick", function=function)
        return {"metrics": 0, "skipped": "stale-tick"}
    counts: list[int] = []
    _each_look(wired, context, command, lambda invocation: counts.append(_measure_once(function, wired, invocation)))
    return {"metrics": sum(counts)} | ({"dry_run": True} if command.dry_run else {})


def _measure_once(function: str, wired: Runtime, invocation: Invocation) -> int:
    """Take one look and publish what it saw; return how many metrics there were."""
    data = study.publish(wired.ports, wired.fleet, invocation)
    if invocation.dry_run:
        return len(data)
    sent = wired.ports.metrics.publish([*data, heartbeat(wired.fleet.name, function)], wired.ports.clock())
    log("measured", function=function, metrics=sent)
    return sent


def _scale_once(function: str, wired: Runtime, invocation: Invocation, command: Command, ordinary: Pass) -> list[Report]:
    """Take one look and act on it; nothing to report where another pass held the lease."""
    try:
        if command.order is None:
            reports = ordinary(wired.ports, wired.fleet, invocation)
        else:
            reports = passes.carry_out(wired.ports, wired.fleet, invocation, command.order)
    except LeaseHeldError:
        if command.by_a_person:
            raise
        log("lease_held", function=function)
        send(wired, scaling(wired.fleet.name, {"LeaseHeld": 1}))
        return []
    log_reports(function, reports)
    if not command.dry_run:
        send(wired, _scaling_data(wired.fleet.name, function, reports))
    return reports


def _each_look(wired: Runtime, context: Context, command: Command, look: Callable[[Invocation], None]) -> None:
    """Take every look of this invocation. One that fails is made good by the next; the last one's failure is the invocation's."""
    failure = None
    for invocation in _turns(wired, context, command):
        try:
            look(invocation)
            failure = None
        except TransientError as error:
            log("look_failed", pass_id=invocation.pass_id, error=f"{type(error).__name__}: {error}")
            failure = error
    if failure:
        raise failure


def _turns(wired: Runtime, context: Context, command: Command) -> Iterator[Invocation]:
    """One look; on a schedule that looks several times a minute, the others too while there is time to act on what they see."""
    clock, every = wired.ports.clock, wired.ports.look_every_seconds
    began_at = clock()
    ends_at = began_at + context.get_remaining_time_in_millis() / 1000.0
    number = 0
    while True:
        yield Invocation(
            request_id=context.aws_request_id,
            ends_at=ends_at,
            look=number + 1,
            dry_run=command.dry_run,
            by_a_person=command.by_a_person,
        )
        # A look that took longer than the interval costs the next one its invocation, not its distance.
        number = max(number + 1, ceil((clock() - began_at) / every))
        next_at = began_at + number * every
        if command.by_a_person or next_at >= began_at + MINUTE_SECONDS or next_at + LAST_LOOK_SECONDS > ends_at:
            return
        wired.ports.sleep(next_at - clock())


def _scaling_data(fleet: str, function: str, reports: list[Report]) -> list[Datum]:
    return [*scaling(fleet, _counts(reports)), heartbeat(fleet, function)]


def _counts(reports: list[Report]) -> dict[str, int]:
    results = [result for report in reports for result in report.results]
    held = {(h.controller, h.pool, h.reason) for report in reports for h in report.plan.held}
    return {
        "Launches": done(results, Launch),
        "LaunchesHeld": sum(reason in _HOLDS_LAUNCHES for _, _, reason in held),
        "Terminations": done(results, Terminate),
        "BootFailures": sum(len(report.plan.boot_failures) for report in reports),
        "Quarantines": _quarantines(results),
        "Ec2Disagrees": any(reason is Reason.EC2_DISAGREES for _, _, reason in held),
        "SweepsStopped": sum(reason is Reason.SWEEP_LIMIT for _, _, reason in held),
        "LeaseHeld": 0,
    }


def _quarantines(results: list[Result]) -> int:
    cordons = [result.step for result in results if isinstance(result.step, Cordon) and result.outcome is Outcome.DONE]
    return sum(step.mark.kind is MarkClass.QUARANTINE and step.reason is not Reason.LABELS_TAKEN for step in cordons)


_HOLDS_LAUNCHES = {
    Reason.HELD,
    Reason.FROZEN,
    Reason.MAX_AGENTS,
    Reason.FLEET_MAX_AGENTS,
    Reason.LAUNCH_RATE,
    Reason.USD_PER_HOUR,
    Reason.USD_PER_MONTH,
    Reason.NO_OFFERING,
    Reason.POOL_PAUSED,
    Reason.ACCOUNT_THROTTLED,
    Reason.BREAKER_OPEN,
    Reason.ONE_TRIAL,
    Reason.CANARY,
}
