"""Runs the scheduled functions: reads the event, takes one look or several, reports."""

from collections import Counter
from collections.abc import Callable, Iterator
from math import ceil
from typing import Any

from autoscaler import bootstrap
from autoscaler.bootstrap import Runtime
from autoscaler.control import measure, passes
from autoscaler.control.counts import counts_of
from autoscaler.control.events import events_of, note
from autoscaler.control.invocation import Invocation
from autoscaler.control.pass_notes import leave_note, places_of_reports
from autoscaler.control.publish import publish_all, publish_essential
from autoscaler.control.report import Report, merged_json
from autoscaler.control.run_orders import carry_orders_on
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.snapshot import MINUTE_SECONDS
from autoscaler.domain.memo import Memo
from autoscaler.domain.report.datum import Datum
from autoscaler.domain.report.metrics import heartbeat, held_by_teams, scaling
from autoscaler.domain.report.run_orders import Outcome as RunOutcome
from autoscaler.entry.context import Context
from autoscaler.entry.counts import tell_counts
from autoscaler.entry.events import SCALE_DOWN, SCALE_UP, TICK, Shapes, Trigger, read_trigger
from autoscaler.errors import LeaseHeldError, TransientError
from autoscaler.ports import Ports
from autoscaler.telemetry import log, log_reports, send_metrics

# Looking several times a minute, no look is begun with less time left than this: it could not act any more.
LAST_LOOK_SECONDS = 12.0

Pass = Callable[[Ports, Fleet, Invocation], list[Report]]
Look = Callable[[Runtime, Trigger, Invocation], None]


def scale_up(event: Any, context: Context) -> dict[str, Any]:
    """Scale up, or answer the doctor; return the plan."""
    if isinstance(event, dict) and "action" in event:
        from autoscaler.entry.doctor import try_launches  # noqa: PLC0415 - the schedule needs none of it

        return try_launches(event)
    return _scale("scale_up", SCALE_UP, event, context, passes.scale_up)


def scale_down(event: Any, context: Context) -> dict[str, Any]:
    """Scale down; return the plan."""
    return _scale("scale_down", SCALE_DOWN, event, context, passes.scale_down)


def publish_metrics(event: Any, context: Context) -> dict[str, Any]:
    """Publish metrics; return how many there were."""
    counts: list[int] = []
    trigger = _each_look("publish_metrics", TICK, event, context, lambda wired, _, invocation: counts.append(_measure(wired, invocation)))
    if trigger is None:
        return {"metrics": 0, "skipped": "stale-tick"}
    return {"metrics": sum(counts)} | ({"dry_run": True} if trigger.dry_run else {})


def _scale(function: str, shapes: Shapes, event: Any, context: Context, ordinary: Pass) -> dict[str, Any]:
    reports: list[Report] = []

    def look(wired: Runtime, trigger: Trigger, invocation: Invocation) -> None:
        reports.extend(_scale_once(function, wired, invocation, trigger, ordinary))

    if _each_look(function, shapes, event, context, look) is None:
        return {"skipped": "stale-tick"}
    return merged_json(reports) if reports else {"skipped": "lease-held"}


def _measure(wired: Runtime, invocation: Invocation) -> int:
    """Take one look and publish what it saw; return how many metrics there were."""
    measured = measure.collect(wired.ports, wired.fleet, invocation)
    if invocation.dry_run:
        return len(measured.data)
    asked = wired.ports, wired.fleet.name, measured, invocation
    sent = publish_essential(*asked, bootstrap.thresholds()) if wired.essential else publish_all(*asked)
    log("measured", function="publish_metrics", metrics=sent)
    return sent


def _scale_once(function: str, wired: Runtime, invocation: Invocation, trigger: Trigger, ordinary: Pass) -> list[Report]:
    """Take one look and act on it; return no report where another pass held the lease."""
    try:
        if trigger.order is None:
            reports = ordinary(wired.ports, wired.fleet, invocation)
        else:
            reports = passes.carry_out(wired.ports, wired.fleet, invocation, trigger.order)
    except LeaseHeldError:
        if trigger.by_a_person:
            raise
        log("lease_held", function=function)
        tell_counts(wired, function, {"LeaseHeld": 1})
        return []
    log_reports(function, reports)
    note(wired.ports, events_of(function, reports))
    if not trigger.dry_run:
        _tell(wired, function, reports)
    if ordinary is passes.scale_down and trigger.order is None and not trigger.dry_run:
        _carry_runs_on(wired, invocation, reports)
    return reports


def _carry_runs_on(wired: Runtime, invocation: Invocation, reports: list[Report]) -> None:
    """Carry on the runs that people have ordered, with what the pass knows of agents that have gone."""
    outcomes = carry_orders_on(wired.ports, wired.fleet, invocation, reports)
    if not outcomes:
        return
    counts = Counter(outcomes)
    ended = {"RunsPassed": counts[RunOutcome.PASSED], "RunsFailed": counts[RunOutcome.FAILED], "BuildsLeft": counts[RunOutcome.UNFINISHED]}
    tell_counts(wired, "scale_down", ended)


def _tell(wired: Runtime, function: str, reports: list[Report]) -> None:
    """Tell what a pass did, and that it was completed: as metrics, or in a note that `publish_metrics` reads."""
    if wired.essential:
        leave_note(wired.ports, function, counts_of(reports), places_of_reports(reports), completed=True)
    else:
        send_metrics(wired.ports, scaling_data(wired.fleet, function, reports))


def _each_look(function: str, shapes: Shapes, event: Any, context: Context, look: Look) -> Trigger | None:
    """Take every look of an invocation; None for a stale tick. The next look makes a failed one good; the last one's failure is raised."""
    wired = bootstrap.runtime()
    trigger = read_trigger(shapes, event, wired.fleet)
    if trigger.stale(wired.ports.clock()):
        log("stale_tick", function=function)
        return None
    failure = None
    for invocation in _looks(wired, context, trigger):
        try:
            look(wired, trigger, invocation)
            failure = None
        except TransientError as error:
            log("look_failed", pass_id=invocation.pass_id, error=f"{type(error).__name__}: {error}")
            failure = error
    if failure:
        raise failure
    return trigger


def _looks(wired: Runtime, context: Context, trigger: Trigger) -> Iterator[Invocation]:
    """Yield one look; on a schedule of several looks a minute the others, too, while there is time to act on them."""
    clock, every = wired.ports.clock, wired.ports.look_every_seconds
    began_at = clock()
    ends_at = began_at + context.get_remaining_time_in_millis() / 1000.0
    number, memo = 0, Memo()
    while True:
        yield Invocation(
            request_id=context.aws_request_id,
            ends_at=ends_at,
            look=number + 1,
            dry_run=trigger.dry_run,
            by_a_person=trigger.by_a_person,
            memo=memo,
        )
        # A look that took longer than the interval costs the next one its place, not its distance.
        number = max(number + 1, ceil((clock() - began_at) / every))
        next_at = began_at + number * every
        if trigger.by_a_person or next_at >= began_at + MINUTE_SECONDS or next_at + LAST_LOOK_SECONDS > ends_at:
            return
        wired.ports.sleep(next_at - clock())


def scaling_data(fleet: Fleet, function: str, reports: list[Report]) -> list[Datum]:
    """Describe what a pass did, and that it was completed."""
    held = [held for report in reports for held in report.plan.held]
    return [*scaling(fleet.name, counts_of(reports)), *held_by_teams(fleet, held), heartbeat(fleet.name, function)]
