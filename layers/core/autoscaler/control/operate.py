"""Orders of a person beyond one pass: holds, pool overrides, purges, runs; and questions about the fleet."""

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from hashlib import sha256
from math import inf
from typing import Any

from autoscaler.control import passes
from autoscaler.control.apply import apply
from autoscaler.control.measure import telemetry_of, why_nobody_is_told
from autoscaler.control.observe import Invocation, observe, observe_without_instances
from autoscaler.control.outcomes import Report
from autoscaler.control.run_steps import STARTS_A_LOOK, RunKeeper
from autoscaler.control.statistics import told_etas
from autoscaler.domain import commands, decide
from autoscaler.domain.facts.fleet import Ceilings, Fleet, Pool
from autoscaler.domain.facts.job_stats import Subject
from autoscaler.domain.facts.orders import (
    POOL_NUMBERS,
    TEAM_NUMBERS,
    Hold,
    Overrides,
    PoolOverride,
    Purge,
    Reserve,
    Resume,
    Scope,
    TeamOverride,
    hold,
    in_force,
    resume,
)
from autoscaler.domain.facts.started_builds import RunOrder, job_path
from autoscaler.domain.facts.telemetry import Telemetry
from autoscaler.domain.learn import assess
from autoscaler.domain.report.eta import QueueEntry
from autoscaler.domain.report.explain import explain, unreadable
from autoscaler.domain.report.listing import AgentEntry, list_agents, list_queue, told_of
from autoscaler.domain.report.messages import still_told
from autoscaler.domain.report.ordered import (
    Access,
    ReservationEntry,
    RunEntry,
    entry_of,
    jobs_of_items,
    known_names,
    list_reservations,
    meant,
    reserved_by,
    several,
)
from autoscaler.domain.report.ordered import (
    told as told_run,
)
from autoscaler.domain.report.status import Status, status_of
from autoscaler.domain.report.told import Event
from autoscaler.domain.run_orders.choice import CancelRun, ChoiceError, Chosen, OrderRuns, Statistics, choose, new_order, refusal_of
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import duration, shortened
from autoscaler.errors import AutoscalerError, ConflictError, EventRefusedError, TransientError
from autoscaler.ports import Ports, RunOrderStore

_TRIES_BEFORE_THE_LAST = 2
_HISTORY_SECONDS, _LAST_EVENTS = 86_400.0, 5
_BEFORE_IT_DRAINS_SECONDS = 600.0  # a pass sees a mark some time after it was set


def change(ports: Ports, invocation: Invocation, changed: Callable[[Overrides], Overrides]) -> Overrides:
    """Change the overrides, and drop those that have ended. Of two people at once the second works on what the first one left."""
    for _ in range(_TRIES_BEFORE_THE_LAST):
        try:
            return _change_once(ports, invocation, changed)
        except ConflictError:
            ports.log("standing_changed_meanwhile")
    return _change_once(ports, invocation, changed)


def _change_once(ports: Ports, invocation: Invocation, changed: Callable[[Overrides], Overrides]) -> Overrides:
    overrides = changed(ports.state.read().overrides.at(ports.clock()))
    if not invocation.dry_run:
        ports.state.save_overrides(overrides)
    return overrides


def hold_for_a_person(ports: Ports, fleet: Fleet, invocation: Invocation, order: Hold) -> tuple[Overrides, list[Report]]:
    """Hold something; take a label from the nodes at once. If that is not possible now, the schedule does it: the hold stands."""
    overrides = change(ports, invocation, partial(hold, new=order))
    if order.scope is not Scope.LABEL or invocation.dry_run:
        return overrides, []
    relabel = partial(passes.one_pass, ports, fleet, invocation, commands.relabel_for_holds)
    report = ports.or_else(relabel, "labels_taken_later", otherwise=None, label=order.name)
    return overrides, [report] if report else []


def lift(ports: Ports, fleet: Fleet, invocation: Invocation, order: Resume) -> tuple[Overrides, list[Report]]:
    """Lift people's holds of a scope, then bring back what was cordoned under it. Named nodes come back without lifting a hold."""
    if order.nodes:
        overrides = ports.state.read().overrides.at(ports.clock())
    else:
        overrides = change(ports, invocation, partial(resume, scope=order.scope, name=order.name))
    return overrides, [passes.one_pass(ports, fleet, invocation, partial(commands.bring_back_for_a_person, order=order))]


def purge(ports: Ports, fleet: Fleet, invocation: Invocation, order: Purge) -> list[Report]:
    """Cancel queue items. It needs no lease, since nothing else cancels any."""
    decision = partial(commands.purge_for_a_person, order=order)
    stored = ports.state.read()
    if invocation.dry_run:
        return [passes.plan_only(ports, fleet, invocation, decision, stored)]
    snapshot = observe_without_instances(ports, fleet, stored, invocation)
    return [apply(ports, fleet, snapshot, decision(snapshot, fleet), invocation)]


def reserved(ports: Ports, fleet: Fleet, order: Reserve, access: Access) -> list[ReservationEntry]:
    """Return what a person's order has reserved: what was done may have failed in part, and the schedule goes on with it."""
    stored = ports.state.read()
    return reserved_by(fleet, stored.records, stored.intents, order, access)


def reservations(ports: Ports, fleet: Fleet, invocation: Invocation, access: Access) -> tuple[ReservationEntry, ...]:
    """List who has which agent."""
    return list_reservations(_situation(ports, fleet, invocation), access)


def plan(ports: Ports, fleet: Fleet, invocation: Invocation) -> list[Report]:
    """Plan both passes, and do nothing."""
    stored, dry = ports.state.read(), replace(invocation, dry_run=True)
    return [passes.plan_only(ports, fleet, dry, decision, stored) for decision in (decide.scale_up, decide.scale_down)]


def status(ports: Ports, fleet: Fleet, invocation: Invocation) -> Status:
    """Return the state of the fleet."""
    return _status(ports, fleet, invocation)[0]


def _status(ports: Ports, fleet: Fleet, invocation: Invocation) -> tuple[Status, Situation, Mapping[str, Telemetry]]:
    stored, reports = ports.state.read(), telemetry_of(ports)
    situation = assess(observe(ports, fleet, stored, invocation), fleet)
    told = replace(
        status_of(situation, reports),
        told=still_told(stored.told, situation.now),
        # If SNS does not answer, the status goes without: the doctor says so.
        nobody_told=ports.or_else(partial(why_nobody_is_told, ports.notifier), "subscriptions_unknown", otherwise=""),
    )
    return told, situation, reports


def agents(ports: Ports, fleet: Fleet, invocation: Invocation) -> tuple[AgentEntry, ...]:
    """List every agent."""
    return list_agents(_situation(ports, fleet, invocation), telemetry_of(ports))


def queue(ports: Ports, fleet: Fleet, invocation: Invocation) -> tuple[QueueEntry, ...]:
    """List what waits."""
    return list_queue(_situation(ports, fleet, invocation))


def overview(ports: Ports, fleet: Fleet, invocation: Invocation) -> tuple[Status, tuple[AgentEntry, ...], tuple[QueueEntry, ...]]:
    """Return the state of the fleet, every agent and what waits, all of one look."""
    told, situation, reports = _status(ports, fleet, invocation)
    return told, list_agents(situation, reports), list_queue(situation)


def _situation(ports: Ports, fleet: Fleet, invocation: Invocation) -> Situation:
    return assess(observe(ports, fleet, ports.state.read(), invocation), fleet)


def names(ports: Ports, fleet: Fleet) -> dict[str, list[str]]:
    """Return the names that a person may type, from our own state alone: an answer within a moment."""
    nodes = sorted({record.node for record in ports.state.read().records if record.node})
    return {"pools": list(fleet.pools), "teams": list(fleet.teams), "controllers": list(fleet.controllers), "nodes": nodes}


def limits(fleet: Fleet, overrides: Overrides, of: PoolOverride | TeamOverride) -> dict[str, Any]:
    """Return a pool's or a team's limits with the overrides in force, and those of the fleet file; None where a team has no such limit.

    ``fleet``: as its schedules have it now.
    """
    known = {"now": in_force(fleet, overrides), "fleet_file": fleet}
    if isinstance(of, PoolOverride):
        usd = sum(offering.billed_usd_per_hour for offering in fleet.pools[of.pool].offerings[:1])  # of one agent; hosts have none
        return {"pool": of.pool, "usd_per_hour": usd} | {name: _numbers(one.pools[of.pool], POOL_NUMBERS) for name, one in known.items()}
    return {"team": of.team} | {which: _numbers(one.teams[of.team].ceilings, TEAM_NUMBERS) for which, one in known.items()}


def _numbers(of: Pool | Ceilings, names: Iterable[str]) -> dict[str, float | None]:
    numbers = {name: getattr(of, name) for name in names}
    return {name: None if number == inf else number for name, number in numbers.items()}


def why(ports: Ports, fleet: Fleet, invocation: Invocation, subject: str) -> list[str]:
    """Return the facts about a job, a node or a pool, the answer first, and what was done with it lately.

    Of a name that nothing has, what it may mean is explained, or listed where that is several.
    """
    situation = _situation(ports, fleet, invocation)
    names, facts = known_names(situation), _facts(ports, situation, subject, subject)
    if subject in names or (facts and unreadable(subject) not in facts):
        return facts
    names_meant = meant(subject, names, jobs_of_items(situation))
    if len(names_meant) > 1:
        return several(subject, names_meant, situation)
    return facts if names_meant == (subject,) else _facts(ports, situation, names_meant[0], subject)


def _facts(ports: Ports, situation: Situation, subject: str, asked: str) -> list[str]:
    events = _events(ports, *_names_and_since(situation, subject))
    now = ports.clock()
    lately = [event for event in events if now - event.at <= _HISTORY_SECONDS]
    return [
        *explain(situation.snapshot, situation.fleet, subject, asked, events),
        *told_of(situation, subject, telemetry_of(ports)),
        *told_etas(ports, situation, subject),
        *told_runs(ports, situation.fleet, subject),
        *(
            f"{duration(now - event.at)} ago, {event.outcome} by {event.by}: {event.what}, {event.reason}: {event.detail}"
            for event in lately[-_LAST_EVENTS:]
        ),
    ]


def _names_and_since(situation: Situation, subject: str) -> tuple[set[str], float]:
    """Name what history is to be read for a subject, and from when on: an agent that drains was taken out of use before that."""
    agents = [agent for agent in situation.agents if subject in {agent.record.node, agent.record.instance_id}]
    names = {name for agent in agents for name in (agent.record.node, agent.record.instance_id) if name}
    draining = (past.draining_since for past in map(situation.past, agents) if past.draining_since is not None)
    since = min(draining, default=situation.now)
    return {subject, *names}, min(since - _BEFORE_IT_DRAINS_SECONDS, situation.now - _HISTORY_SECONDS)


def _events(ports: Ports, names: Collection[str], since: float) -> list[Event]:
    """Read which steps were taken with a node, an instance or a job; nothing if the history cannot be read."""
    with suppress(AutoscalerError):
        return [event for event in ports.history.since(since, ports.clock()) if event.subject in names]
    return []


def as_json(overrides: Overrides) -> dict[str, Any]:
    """Write the overrides in force as an answer to a person."""
    return {
        "holds": [
            ({str(hold.scope): hold.name} if hold.name else {})
            | {"freeze": hold.freeze, "since_at": hold.since_at, "until_at": hold.ends_at, "by": hold.by, "reason": hold.reason}
            for hold in overrides.holds
        ],
        "numbers": [{"pool": numbers.pool} | _numbers_json(numbers) for numbers in overrides.numbers],
        "teams": [{"team": numbers.team} | _numbers_json(numbers) for numbers in overrides.teams],
    }


def _numbers_json(numbers: PoolOverride | TeamOverride) -> dict[str, Any]:
    return numbers.given | {name: getattr(numbers, name) for name in ("since_at", "until_at", "by", "reason")}


# What people order and ask about runs: where each takes place is chosen first, and nothing is started where anything is wrong.


_TRIES_TO_CANCEL = 3
_LAST_TOLD = 20
_NOTHING_MORE = "nothing more is started for it: the fleet file has no key runs any more"


def order_runs(ports: Ports, fleet: Fleet, invocation: Invocation, request: OrderRuns) -> RunEntry:
    """Choose where the runs take place, write the order down, and start them; the passes carry it on."""
    store, policy = ports.run_orders, fleet.runs
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
        builds = ports.builds[target.controller]
        if refusal := refusal_of(builds.job(job_path(order.job), ports.clock()), order, target):
            raise EventRefusedError(f"event refused: {refusal}")
    if invocation.dry_run:
        return entry_of(order, ports.clock())
    store.add_order(order)
    return _carried_on(ports, fleet, invocation, order)


def cancel_runs(ports: Ports, fleet: Fleet, invocation: Invocation, request: CancelRun) -> RunEntry:
    """End an order: write it down, then cancel and stop what is open; the passes go on with what cannot be ended now."""
    store = ports.run_orders
    for _ in range(_TRIES_TO_CANCEL):
        order = _known_run(store, request.id)
        if not order.is_open:
            raise EventRefusedError(f"event refused: id ({shortened(request.id)}): it has ended")
        if invocation.dry_run or order.cancelled_by:
            return entry_of(order, ports.clock())
        try:
            order = store.change_order(replace(order, cancelled_by=request.by))
        except ConflictError:
            continue  # a pass carried it on meanwhile
        return _carried_on(ports, fleet, invocation, order)
    raise TransientError(f"{request.id} was changed by others each time; ask again")


def list_runs(ports: Ports, fleet: Fleet, most: int, order_id: str | None) -> list[RunEntry]:
    """List orders: those that are open, then those that ended, the last one first; or one alone."""
    store, now = ports.run_orders, ports.clock()
    if order_id is not None:
        return [_run_entry(fleet, _known_run(store, order_id), now)]
    open_ones = store.open_orders()
    return [_run_entry(fleet, order, now) for order in (*open_ones, *store.ended(max(0, most - len(open_ones))))][:most]


def told_runs(ports: Ports, fleet: Fleet, subject: str) -> list[str]:
    """Say of the orders of a job, or of one by its id, how far they are and why there; nothing where none can be read."""
    try:
        orders = [*ports.run_orders.open_orders(), *ports.run_orders.ended(_LAST_TOLD)]
    except AutoscalerError:
        return []
    now = ports.clock()
    entries = [_run_entry(fleet, order, now) for order in orders if subject in {order.job, order.id}]
    return [line for entry in entries for line in (told_run(entry, now), *(f"{entry.id}: {ranked}" for ranked in entry.ranking))]


def _run_entry(fleet: Fleet, order: RunOrder, now: float) -> RunEntry:
    """Tell of an order; of one that is open though nobody may order runs any more, that nothing more is started for it."""
    entry = entry_of(order, now)
    return replace(entry, summary=f"{entry.summary}; {_NOTHING_MORE}") if order.is_open and fleet.runs is None else entry


def _carried_on(ports: Ports, fleet: Fleet, invocation: Invocation, order: RunOrder) -> RunEntry:
    """Begin at once. What fails now, the next pass does: the order stands."""
    keeper = RunKeeper(ports=ports, ends_at=invocation.ends_at, starts=STARTS_A_LOOK if fleet.runs else 0)
    carried = ports.or_else(partial(keeper.carry_on, order), "run_order_not_carried_on", otherwise=None, order=order.id)
    return entry_of(carried or ports.run_orders.order(order.id) or order, ports.clock())


def _chosen(ports: Ports, fleet: Fleet, invocation: Invocation, request: OrderRuns) -> Chosen:
    situation = _situation(ports, fleet, invocation)
    try:
        return choose(situation, request.asked, _statistics(ports, request.asked.job))
    except ChoiceError as error:
        raise EventRefusedError(f"event refused: {error}") from error


def _statistics(ports: Ports, job: str) -> Statistics:
    """Read what is known of a job; without that, pools are ranked by when a build would start."""
    names = [controller.name for controller in ports.controllers]

    def read() -> Statistics:
        return {name: (ports.jobs.tracker(name), ports.jobs.rows(name, {Subject(job)})) for name in names}

    return ports.or_else(read, "job_statistics_not_read", otherwise={})


def _known_run(store: RunOrderStore, order_id: str) -> RunOrder:
    order = store.order(order_id)
    if order is None:
        raise EventRefusedError(f"event refused: id ({shortened(order_id)}): there is no such run")
    return order
