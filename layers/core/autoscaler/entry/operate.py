"""Carries out what a person orders or asks, beyond what the scaling functions take."""

from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from autoscaler import bootstrap
from autoscaler.bootstrap import Runtime
from autoscaler.control import operate, passes, statistics
from autoscaler.control.doctor import examine
from autoscaler.control.observe import Invocation
from autoscaler.control.outcomes import Report, merged_json, note
from autoscaler.domain.facts.orders import (
    Hold,
    Overrides,
    PoolOverride,
    Purge,
    Reserve,
    Resume,
    ResumeBudget,
    TeamOverride,
    override_pool,
    override_team,
    resume_budget,
)
from autoscaler.domain.facts.pools import fleet_at
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.report.limits import list_schedules
from autoscaler.domain.report.told import Event
from autoscaler.domain.run_orders.choice import CancelRun, OrderRuns
from autoscaler.entry.events import Context, answers_refusals
from autoscaler.entry.invocations import begin
from autoscaler.entry.operations import (
    About,
    Costs,
    Doctor,
    Events,
    FleetOrder,
    Jobs,
    Operation,
    Order,
    Runs,
    read_operation,
)
from autoscaler.errors import EventRefusedError, TransientError
from autoscaler.telemetry import log, log_reports

# Carries out a request once, however often it arrives (Powertools' idempotency, in the state table).


_REMEMBERED_SECONDS = 86_400


def once(request_id: str, context: Context, act: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Act, and store the answer for a day, which the same request id then gets. A failed request may be repeated."""
    # Only who gives a request id needs these, and importing them costs a cold start time.
    from aws_lambda_powertools.utilities.idempotency import IdempotencyConfig, idempotent_function  # noqa: PLC0415
    from aws_lambda_powertools.utilities.idempotency.exceptions import (  # noqa: PLC0415
        IdempotencyAlreadyInProgressError,
        IdempotencyPersistenceLayerError,
    )

    config = IdempotencyConfig(event_key_jmespath="request_id", expires_after_seconds=_REMEMBERED_SECONDS)
    config.register_lambda_context(context)  # type: ignore[arg-type]  # of it only the time that is left is read

    @idempotent_function(data_keyword_argument="request", persistence_store=bootstrap.completed_requests(), config=config)  # type: ignore[untyped-decorator]
    def act_once(*, request: dict[str, str]) -> dict[str, Any]:  # noqa: ARG001 - Powertools reads it
        return act()

    try:
        answer: dict[str, Any] = act_once(request={"request_id": request_id})
    except IdempotencyAlreadyInProgressError as error:
        raise TransientError(f"request {request_id} is being done at this moment") from error
    except IdempotencyPersistenceLayerError as error:
        raise TransientError(f"whether request {request_id} was done could not be read or written") from error
    return answer


# Carries out orders, and answers questions.


# An answer of Lambda holds 6 MB.
_EVENTS_OF_OVERVIEW = 100
_REFUSED = "is an order, and you may only ask: orders need the stack's OperatorPolicy"
_NOTHING_TO_DO = (Reason.NOT_FOUND, Reason.ALREADY_DONE)


@answers_refusals
def handle(event: Any, context: Context) -> dict[str, Any]:
    """Carry out an order, if this function takes any, or answer a question; an order with a request id is carried out once."""
    wired = bootstrap.runtime()
    now = wired.ports.clock()
    operation, only_answers = read_operation(event), bootstrap.refuses_orders()
    if operation.is_order and only_answers:
        raise EventRefusedError(f"event refused: action ({operation.action}): {_REFUSED}")
    order = operation.order(wired.fleet, now)
    # A function that only answers makes a dry run of everything: its doctor tries nothing in Jenkins.
    invocation = begin(wired, context, operation.by, dry_run=operation.dry_run or only_answers, by_a_person=True)
    if isinstance(order, Reserve | OrderRuns) and not order.request_id:
        order = replace(order, request_id=invocation.request_id)
    if order is None:
        answer = _answer(wired, invocation, operation)
    else:
        carry_out = partial(_carry_out, wired, invocation, operation, order)
        answer = once(operation.request_id, context, carry_out) if operation.request_id and not operation.dry_run else carry_out()
    return {"action": operation.action, "dry_run": invocation.dry_run, "now_at": now} | answer


def _carry_out(wired: Runtime, invocation: Invocation, operation: Operation, order: Order) -> dict[str, Any]:
    """Carry out an order, and log who wanted it and why."""
    if isinstance(order, OrderRuns | CancelRun):
        entry = (
            operate.order_runs(wired.ports, wired.fleet, invocation, order)
            if isinstance(order, OrderRuns)
            else operate.cancel_runs(wired.ports, wired.fleet, invocation, order)
        )
        _note(wired, operation, is_event=True, subject=entry.job, detail=f"{entry.id}: {operation.reason}")
        return {"runs": [asdict(entry)]}
    before = wired.ports.state.read().overrides.at(wired.ports.clock()) if isinstance(order, Resume | ResumeBudget) else None
    overrides, reports = _applied(wired, invocation, order)
    names = ("controller", "pool", "team", "label", "breaker", "target")
    place = "/".join(str(named) for name in names if (named := getattr(operation, name, None)))
    _note(wired, operation, is_event=_is_event(order, reports, changed=overrides != before), where=place, detail=operation.reason)
    log_reports("operate", reports)
    in_force = {} if overrides is None else operate.as_json(overrides)
    if isinstance(order, PoolOverride | TeamOverride) and overrides is not None:
        in_force |= {"limits": operate.limits(fleet_at(wired.fleet, wired.ports.clock()), overrides, order)}
    if isinstance(order, Reserve):
        in_force |= {"reservations": _dicts(operate.reserved(wired.ports, wired.fleet, order, bootstrap.access()))}
    return in_force | ({"plan": merged_json(reports)} if reports else {})


def _is_event(order: FleetOrder, reports: Iterable[Report], *, changed: bool) -> bool:
    """Tell whether an order belongs in the history: not one that found nothing to do. ``changed``: the overrides are others now."""
    if changed or any(report.results for report in reports):
        return True
    held = [held.reason for report in reports for held in report.plan.held]
    lifts = isinstance(order, Resume | ResumeBudget | Purge)  # of these no held step means that there was nothing to lift
    return any(reason not in _NOTHING_TO_DO for reason in held) if held else not lifts


def _note(wired: Runtime, operation: Operation, *, is_event: bool, **about: str) -> None:
    """Log who ordered what, and why; add it to the history if it did anything."""
    log("operated", action=operation.action, by=operation.by, reason=operation.reason, dry_run=operation.dry_run)
    if is_event and not operation.dry_run:
        note(wired.ports, [Event(at=wired.ports.clock(), by=operation.by, what=operation.action, **about)])


def _applied(wired: Runtime, invocation: Invocation, order: FleetOrder) -> tuple[Overrides | None, list[Report]]:
    """Return the overrides in force where the order is about them, and a report of each pass it took."""
    ports, fleet = wired.ports, wired.fleet
    match order:
        case Hold():
            return operate.hold_for_a_person(ports, fleet, invocation, order)
        case PoolOverride():
            return operate.change(ports, invocation, partial(override_pool, new=order)), []
        case TeamOverride():
            return operate.change(ports, invocation, partial(override_team, new=order)), []
        case Resume():
            return operate.lift(ports, fleet, invocation, order)
        case ResumeBudget():
            # What the AWS budget's hold let go is launched again by the next pass, if it is wanted.
            return operate.change(ports, invocation, resume_budget), []
        case Purge():
            return None, operate.purge(ports, fleet, invocation, order)
        case _:
            return None, passes.carry_out(ports, fleet, invocation, order)


def _answer(wired: Runtime, invocation: Invocation, question: Operation) -> dict[str, Any]:
    """Answer a question, which changes nothing and is not logged."""
    ports, fleet = wired.ports, wired.fleet
    match question:
        case About(action="why"):
            return {"subject": question.subject, "facts": operate.why(ports, fleet, invocation, question.subject)}
        case Events():
            return {"events": _dicts(_history(wired, question))}
        case About():
            return {"subject": question.subject, "builds": _dicts(statistics.eta(ports, fleet, invocation, question.subject))}
        case Jobs():
            pattern, most, is_of_needs = question.pattern, question.most, question.action == "needs"
            return asdict(statistics.list_needs(ports, fleet, pattern, most) if is_of_needs else statistics.list_jobs(ports, pattern, most))
        case Costs():
            of_days = (span := question.day or question.days) and statistics.list_days(ports, fleet, span, question.by)
            return asdict(of_days or statistics.list_month(ports, fleet, question.month, question.by))
        case Runs():
            return {"runs": _dicts(operate.list_runs(ports, fleet, question.most, question.id))}
        case Doctor():
            return {"findings": _dicts(examine(ports, bootstrap.account(), fleet, invocation))}
        case _:
            return _look(wired, invocation, question.action)


def _dicts(entries: Iterable[Any]) -> list[dict[str, Any]]:
    """Write entries as JSON."""
    return [asdict(entry) for entry in entries]


def _history(wired: Runtime, question: Events) -> list[Event]:
    now = wired.ports.clock()
    events = wired.ports.history.since(now - question.hours * 3600.0, now)
    return [event for event in events if question.pool in {None, event.where.rpartition("/")[2]}]


def _look(wired: Runtime, invocation: Invocation, action: str) -> dict[str, Any]:
    """Answer what is, or what would be done; where it depends on them, with the schedules, holds and overrides in force."""
    ports, fleet = wired.ports, wired.fleet
    told: dict[str, Any]
    match action:
        case "agents":
            return {"agents": _dicts(operate.agents(ports, fleet, invocation))}
        case "queue":
            return {"queue": _dicts(operate.queue(ports, fleet, invocation))}
        case "reservations":
            return {"reservations": _dicts(operate.reservations(ports, fleet, invocation, bootstrap.access()))}
        case "names":
            return {"names": operate.names(ports, fleet)}
        case "overview":
            status, agents, queue = operate.overview(ports, fleet, invocation)
            told = {
                "status": asdict(status),
                "agents": _dicts(agents),
                "queue": _dicts(queue),
                "events": _dicts(_history(wired, Events(action="events"))[-_EVENTS_OF_OVERVIEW:]),
            }
        case "plan":
            told = {"plan": merged_json(operate.plan(ports, fleet, invocation))}
        case _:
            told = {"status": asdict(operate.status(ports, fleet, invocation))}
    now = ports.clock()
    schedules = _dicts(list_schedules(fleet, now))
    return operate.as_json(ports.state.read().overrides.at(now)) | {"schedules": schedules} | told
