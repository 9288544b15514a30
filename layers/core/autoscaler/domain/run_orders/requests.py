"""What a person asks for when ordering runs, and the order that comes of it."""

from dataclasses import dataclass

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.runs import Job
from autoscaler.domain.facts.started_builds import Part, RunOrder, Target, Until
from autoscaler.domain.run_orders.choice import Asked, Chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderRuns:
    """Order builds of a job. ``request_id``: the same one orders them once; ``replace`` None: as many as there are runs."""

    asked: Asked
    parameters: tuple[tuple[str, str], ...]
    until: Until
    resubmit: int
    replace: int | None
    by: str
    reason: str
    request_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRun:
    """End an order: what waits is cancelled, what runs is stopped."""

    id: str
    by: str
    reason: str


def new_order(request: OrderRuns, order_id: str, chosen: Chosen, fleet: Fleet, now: float) -> RunOrder:
    """Make the order. Only gangs replace workers that fail."""
    asked = request.asked
    replaced = 0 if request.until is Until.EACH else asked.runs if request.replace is None else request.replace
    return RunOrder(
        id=order_id,
        job=asked.job,
        parameters=request.parameters,
        label_parameter=fleet.runs.label_parameter if fleet.runs else "",
        run_parameter=fleet.rerun_parameter,
        by=request.by,
        reason=request.reason,
        created_at=now,
        parts=tuple(Part(target=target) for target in chosen.targets),
        until=request.until,
        resubmit=request.resubmit,
        replace=replaced,
        vary=str(asked.vary or ""),
        ranking=chosen.ranking,
    )


def refusal_of(job: Job | None, order: RunOrder, target: Target) -> str | None:
    """Say why a job cannot be ordered on a controller; None when it can."""
    if job is None:
        return f"job ({order.job}): {target.controller} shows no such job"
    if not job.buildable:
        return f"job ({order.job}): it is disabled on {target.controller}"
    needs = {order.label_parameter: "by which it is told where to run", order.run_parameter: "by which its builds are found again"}
    for name, what in needs.items():
        if name not in job.declares:
            return f"job ({order.job}): it declares no parameter {name} on {target.controller}, {what}"
    if unknown := [name for name, _ in order.parameters if name not in job.declares]:
        return f"parameters ({unknown[0]}): {order.job} declares no such parameter on {target.controller}"
    if own := [name for name, _ in order.parameters if name in needs]:
        return f"parameters ({own[0]}): is set by the autoscaler"
    return None
