"""Runs the scheduled functions: reads the event, takes a look, reports."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from autoscaler import bootstrap
from autoscaler.bootstrap import Runtime
from autoscaler.control import measure, passes
from autoscaler.control.measure import publish_all, publish_essential
from autoscaler.control.observe import Invocation
from autoscaler.control.outcomes import Report, counts_of, merged_json
from autoscaler.control.run_steps import carry_orders_on
from autoscaler.control.slots import announce_looks, why_skipped
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.report.ordered import Outcome as RunOutcome
from autoscaler.entry.events import (
    SCALE_DOWN,
    SCALE_UP,
    TICK,
    Context,
    Shapes,
    Trigger,
    answers_refusals,
    read_trigger,
    read_woken,
)
from autoscaler.entry.invocations import begin, tell_counts
from autoscaler.errors import LeaseHeldError
from autoscaler.ports import Ports
from autoscaler.telemetry import log, log_reports

Pass = Callable[[Ports, Fleet, Invocation], list[Report]]


@answers_refusals
def scale_up(event: Any, context: Context) -> dict[str, Any]:
    """Scale up, or answer the doctor; return the plan."""
    if isinstance(event, dict) and "action" in event:
        from autoscaler.entry.doctor import try_launches  # noqa: PLC0415 - the schedule needs none of it

        return try_launches(event)
    if isinstance(event, dict) and "Records" in event:
        return _woken_up(event, context)
    return _scale("scale_up", SCALE_UP, event, context, passes.scale_up)


def _woken_up(event: Any, context: Context) -> dict[str, Any]:
    """Take a look between two ticks, unless another invocation has taken it, or the next one is on its way."""
    wired, woken = bootstrap.runtime(), read_woken(event)
    if skipped := why_skipped(wired.ports, woken.slot, woken.at):
        log("look_skipped", slot=woken.slot, reason=skipped)
        return {"skipped": skipped}
    trigger = Trigger(order=None, dry_run=False, tick_at=woken.at)
    return _scale_once("scale_up", wired, begin(wired, context, "scale_up"), trigger, passes.scale_up)


@answers_refusals
def scale_down(event: Any, context: Context) -> dict[str, Any]:
    """Scale down; return the plan."""
    return _scale("scale_down", SCALE_DOWN, event, context, passes.scale_down)


@answers_refusals
def publish_metrics(event: Any, context: Context) -> dict[str, Any]:
    """Publish what one look saw; return how many metrics there were."""
    begun = _begun("publish_metrics", TICK, event, context)
    if begun is None:
        return {"metrics": 0, "skipped": "stale-tick"}
    wired, invocation, _ = begun
    measured = measure.collect(wired.ports, wired.fleet, invocation)
    if invocation.dry_run:
        return {"metrics": len(measured.data), "dry_run": True}
    asked = wired.ports, wired.fleet.name, measured, invocation
    sent = publish_essential(*asked, bootstrap.thresholds()) if wired.essential else publish_all(*asked)
    log("measured", function="publish_metrics", metrics=sent)
    return {"metrics": sent}


def _scale(function: str, shapes: Shapes, event: Any, context: Context, ordinary: Pass) -> dict[str, Any]:
    begun = _begun(function, shapes, event, context)
    return {"skipped": "stale-tick"} if begun is None else _scale_once(function, *begun, ordinary)


def _scale_once(function: str, wired: Runtime, invocation: Invocation, trigger: Trigger, ordinary: Pass) -> dict[str, Any]:
    """Take one look and act on it; return the plan, or that another pass held the lease."""
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
        return {"skipped": "lease-held"}
    log_reports(function, reports)
    if not trigger.dry_run:
        tell_counts(wired, function, counts_of(reports), of_pass=reports)
    if ordinary is passes.scale_down and trigger.order is None and not trigger.dry_run:
        # The runs that people have ordered are carried on, with what the pass knows of agents that have gone.
        ended = Counter(carry_orders_on(wired.ports, wired.fleet, invocation, reports))
        if ended:
            passed, failed, unfinished = (ended[one] for one in (RunOutcome.PASSED, RunOutcome.FAILED, RunOutcome.UNFINISHED))
            tell_counts(wired, "scale_down", {"RunsPassed": passed, "RunsFailed": failed, "BuildsLeft": unfinished})
    return merged_json(reports)


def _begun(function: str, shapes: Shapes, event: Any, context: Context) -> tuple[Runtime, Invocation, Trigger] | None:
    """Begin the look of an invocation; None for a stale tick."""
    wired = bootstrap.runtime()
    trigger = read_trigger(shapes, event, wired.fleet)
    if trigger.stale(wired.ports.clock()):
        log("stale_tick", function=function)
        return None
    if trigger.tick_at is not None:
        announce_looks(wired.ports, trigger.tick_at)
    return wired, begin(wired, context, function, dry_run=trigger.dry_run, by_a_person=trigger.by_a_person), trigger
