"""What people order and ask about runs: where each takes place is chosen first, and nothing is started where anything is wrong."""

from dataclasses import replace
from hashlib import sha256

from autoscaler.control.observe import Invocation, observe
from autoscaler.control.run_steps import STARTS_A_LOOK, RunKeeper
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.job_stats import Subject
from autoscaler.domain.facts.started_builds import RunOrder, job_path
from autoscaler.domain.learn import assess
from autoscaler.domain.report.ordered import RunEntry, entry_of, told
from autoscaler.domain.run_orders.choice import CancelRun, ChoiceError, Chosen, OrderRuns, Statistics, choose, new_order, refusal_of
from autoscaler.domain.wording import shortened
from autoscaler.errors import AutoscalerError, ConflictError, EventRefusedError, TransientError
from autoscaler.ports import Ports, RunOrderStore

_TRIES = 3
_LAST_TOLD = 20
_NOTHING_MORE = "nothing more is started for it: the fleet file has no key runs any more"


def order_runs(ports: Ports, fleet: Fleet, invocation: Invocation, request: OrderRuns) -> RunEntry:
    """Choose where the runs take place, write the order down, and start them; the passes carry it on."""
    store, policy = _store(ports), fleet.runs
    if policy is None:
        raise EventRefusedError("event refused: the fleet file has no key runs, without which nobody may order any (docs/runs.md)")
    order_id = f"run-{sha256(request.request_id.encode()).hexdigest()[:10]}"
    if known := store.order(order_id):
        return entry_of(known, ports.clock())
    if len(store.open_orders()) >= policy.max_open:
        raise EventRefusedError(f"event refused: {policy.max_open} orders are open, no more may be at once (runs.max_open)")
    order = new_order(request, order_id, _chosen(ports, fleet, invocation, request), fleet, ports.clock())
    # If a controller would refuse to start one part, the whole order is refused before anything starts.
    for target in {part.target.controller: part.target for part in order.parts}.values():
        job = ports.builds[target.controller].job(job_path(order.job), ports.clock())
        if refusal := refusal_of(job, order, target):
            raise EventRefusedError(f"event refused: {refusal}")
    if invocation.dry_run:
        return entry_of(order, ports.clock())
    store.add_order(order)
    return _carried_on(ports, fleet, invocation, order)


def cancel(ports: Ports, fleet: Fleet, invocation: Invocation, request: CancelRun) -> RunEntry:
    """End an order: write it down, then cancel and stop what is open; the passes go on with what cannot be ended now."""
    store = _store(ports)
    for _ in range(_TRIES):
        order = _known(store, request.id)
        if not order.is_open:
            raise EventRefusedError(f"event refused: id ({shortened(request.id)}): it has ended")
        if invocation.dry_run or order.cancelled_by:
            return entry_of(order, ports.clock())
        try:
            order = store.change_order(order.ended_by(request.by))
        except ConflictError:
            continue  # a pass carried it on meanwhile
        return _carried_on(ports, fleet, invocation, order)
    raise TransientError(f"{request.id} was changed by others each time; ask again")


def list_runs(ports: Ports, fleet: Fleet, most: int, order_id: str | None) -> list[RunEntry]:
    """List orders: those that are open, then those that ended, the last one first; or one alone."""
    store, now = _store(ports), ports.clock()
    if order_id is not None:
        return [_entry(fleet, _known(store, order_id), now)]
    open_ones = store.open_orders()
    return [_entry(fleet, order, now) for order in (*open_ones, *store.ended(max(0, most - len(open_ones))))][:most]


def told_runs(ports: Ports, fleet: Fleet, subject: str) -> list[str]:
    """Say of the orders of a job, or of one by its id, how far they are and why there; nothing where none can be read."""
    if ports.run_orders is None:
        return []
    try:
        orders = [*ports.run_orders.open_orders(), *ports.run_orders.ended(_LAST_TOLD)]
    except AutoscalerError:
        return []
    now = ports.clock()
    mine = [_entry(fleet, order, now) for order in orders if subject in {order.job, order.id}]
    return [line for entry in mine for line in (told(entry, now), *(f"{entry.id}: {ranked}" for ranked in entry.ranking))]


def _entry(fleet: Fleet, order: RunOrder, now: float) -> RunEntry:
    """Tell of an order; of one that is open though nobody may order runs any more, that nothing more is started for it."""
    entry = entry_of(order, now)
    return replace(entry, summary=f"{entry.summary}; {_NOTHING_MORE}") if order.is_open and fleet.runs is None else entry


def _carried_on(ports: Ports, fleet: Fleet, invocation: Invocation, order: RunOrder) -> RunEntry:
    """Begin at once. What fails now, the next pass does: the order stands."""
    store = _store(ports)
    keeper = RunKeeper(ports=ports, store=store, ends_at=invocation.ends_at, starts=STARTS_A_LOOK if fleet.runs else 0)
    try:
        order = keeper.carry_on(order)
    except AutoscalerError as error:
        ports.log("run_order_not_carried_on", order=order.id, error=f"{type(error).__name__}: {error}")
        order = store.order(order.id) or order
    return entry_of(order, ports.clock())


def _chosen(ports: Ports, fleet: Fleet, invocation: Invocation, request: OrderRuns) -> Chosen:
    situation = assess(observe(ports, fleet, ports.state.read(), invocation), fleet)
    try:
        return choose(situation, request.asked, _statistics(ports, request.asked.job))
    except ChoiceError as error:
        raise EventRefusedError(f"event refused: {error}") from error


def _statistics(ports: Ports, job: str) -> Statistics:
    """Read what is known of a job; without that, pools are ranked by when a build would start."""
    names = [controller.name for controller in ports.controllers]
    try:
        trackers = {name: ports.jobs.tracker(name) for name in names}
        return Statistics(trackers=trackers, rows={name: ports.jobs.rows(name, {Subject(job)}) for name in names})
    except AutoscalerError as error:
        ports.log("job_statistics_not_read", error=f"{type(error).__name__}: {error}")
        return Statistics(trackers={}, rows={})


def _store(ports: Ports) -> RunOrderStore:
    if ports.run_orders is None:
        raise EventRefusedError("event refused: there is no store of orders here")
    return ports.run_orders


def _known(store: RunOrderStore, order_id: str) -> RunOrder:
    order = store.order(order_id)
    if order is None:
        raise EventRefusedError(f"event refused: id ({shortened(order_id)}): there is no such run")
    return order
