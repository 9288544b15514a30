"""Runs a pass: hold the lease, observe, decide, apply."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from autoscaler.control import nodes
from autoscaler.control.apply import STEP_RESERVE_SECONDS, apply
from autoscaler.control.observe import Invocation, log_notes, observe
from autoscaler.control.outcomes import Outcome, Report, Result
from autoscaler.control.steps import launching
from autoscaler.domain import commands, decide
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.orders import CloseBreaker, DrainAll, DrainNodes, DrainSome, EndInstance, LaunchSome, Release, Reserve
from autoscaler.domain.facts.plan import Cordon, Plan
from autoscaler.domain.facts.pools import SETTLE_SECONDS
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import InstanceState, Record, RecordState, Snapshot
from autoscaler.domain.learn import assess
from autoscaler.domain.lifecycle import Announced, InstanceEvent, builds_at_risk
from autoscaler.domain.report.registration import Identity
from autoscaler.errors import DeadlineError, LeaseHeldError, TransientError
from autoscaler.ports import Ports, StoredState

# Lease > function time-out (55 s; 68 s where it looks several times a minute), so that a holder that is cut off cannot be overlapped by
# its own late call.
LEASE_SECONDS = 70.0
LEASE_WAIT_SECONDS = 25.0
LEASE_WAIT_OF_A_PERSON_SECONDS = 45.0

Decision = Callable[[Snapshot, Fleet], Plan]
Order = LaunchSome | DrainSome | DrainNodes | DrainAll | Reserve | Release | EndInstance | CloseBreaker


def scale_up(ports: Ports, fleet: Fleet, invocation: Invocation) -> list[Report]:
    """Bring back and launch what the queue needs. A first look without the lease tells whether there is anything to do."""
    ports = replace(ports, asks_about_builds=False)
    stored = ports.state.read()
    decision = partial(decide.scale_up, memo=invocation.memo)
    preview = plan_only(ports, fleet, invocation, decision, stored)
    if invocation.dry_run or not (preview.plan.steps or launching.unfinished(ports, stored)):
        return [preview]
    return [one_pass(replace(ports, failed=preview.failed), fleet, invocation, decision, may_launch=True)]


def scale_down(ports: Ports, fleet: Fleet, invocation: Invocation) -> list[Report]:
    """Cordon idle agents, wait without the lease, look again, and terminate those that stayed idle."""
    decision = partial(decide.scale_down, memo=invocation.memo)
    first = one_pass(ports, fleet, invocation, decision)
    # Unless anything was cordoned or had drained, a second look could change nothing.
    cordoned = any(isinstance(r.step, Cordon) and r.outcome is Outcome.DONE for r in first.results)
    if invocation.dry_run or not (cordoned or any(held.reason is Reason.SECOND_LOOK for held in first.plan.held)):
        return [first]
    settle = max((pool.drain_settle_seconds for pool in fleet.pools.values()), default=SETTLE_SECONDS)
    if invocation.ends_at - ports.clock() < settle + 2 * STEP_RESERVE_SECONDS:
        return [first]
    ports.sleep(settle)
    again = partial(one_pass, replace(ports, failed=first.failed), fleet, replace(invocation, part="-2"), decision)
    # If it fails, the next tick looks again; what the first half did is done, and its report must go out.
    second = ports.or_else(again, "second_look_failed", otherwise=None, caught=TransientError)
    return [first, second] if second else [first]


def carry_out(ports: Ports, fleet: Fleet, invocation: Invocation, order: Order) -> list[Report]:
    """Carry out a person's order, within the limits."""
    may_launch = isinstance(order, LaunchSome | Reserve)
    decision = partial(DECIDED_BY[type(order)], order=order)
    return [one_pass(replace(ports, asks_about_builds=False), fleet, invocation, decision, may_launch=may_launch)]


DECIDED_BY: Mapping[type, Callable[..., Plan]] = {
    LaunchSome: commands.launch_some,
    Reserve: commands.reserve_for_a_person,
    EndInstance: commands.end_for_a_person,
    Release: commands.release_for_a_person,
    CloseBreaker: commands.close_breaker_for_a_person,
    **dict.fromkeys((DrainSome, DrainNodes, DrainAll), commands.drain_for_a_person),
}


def handle(ports: Ports, fleet: Fleet, invocation: Invocation, event: InstanceEvent) -> tuple[list[Report], tuple[str, ...]]:
    """Act on an event of EC2 about an instance of ours; return the reports and the builds at risk."""
    ports = replace(ports, asks_about_builds=False)
    identity = ports.compute.identity(event.instance_id)
    if identity is None or identity.fleet != fleet.name:
        return [], ()
    stored = ports.state.read()
    if not any(record.instance_id == event.instance_id and _concerns(event, record, identity) for record in stored.records):
        return [], ()  # it has no node, or we gave it up ourselves: the schedule sees to it
    decision = partial(commands.handle, event=event)
    if event.kind is Announced.STATE:  # deleting a node needs the lease; marking one does not
        return [one_pass(ports, fleet, invocation, decision)], ()
    records = (nodes.note_interruption(ports, one) if one.machine == event.instance_id else one for one in stored.records)
    stored = replace(stored, records=tuple(records))
    snapshot = observe(ports, fleet, stored, invocation)
    log_notes(ports, snapshot)
    report = apply(ports, fleet, snapshot, decision(snapshot, fleet), invocation)
    return [report], builds_at_risk(assess(snapshot, fleet), event)


def _concerns(event: InstanceEvent, record: Record, identity: Identity) -> bool:
    """Tell whether an event is worth a pass: of an agent in use or that boots, or of one that was to stop or start and has stopped."""
    if event.kind is Announced.INTERRUPTION and record.state.is_asked_for:
        return True
    if record.state in {RecordState.STOPPING, RecordState.STARTING}:
        return event.kind is Announced.STATE and identity.state is InstanceState.STOPPED
    return record.state is RecordState.REGISTERED


def plan_only(ports: Ports, fleet: Fleet, invocation: Invocation, decision: Decision, stored: StoredState) -> Report:
    """Observe and decide, without applying."""
    snapshot = observe(ports, fleet, stored, invocation)
    log_notes(ports, snapshot)
    plan = decision(snapshot, fleet)
    planned = tuple(Result(step=step, outcome=Outcome.PLANNED) for step in plan.steps)
    return Report(plan=plan, results=planned, dry_run=invocation.dry_run)


def one_pass(ports: Ports, fleet: Fleet, invocation: Invocation, decision: Decision, *, may_launch: bool = False) -> Report:
    """Run one pass under the lease. A pass that may launch first goes on with unanswered launching."""
    if invocation.dry_run:
        return plan_only(ports, fleet, invocation, decision, ports.state.read())
    with _lease(ports, invocation) as holder:
        stored = ports.state.read()
        if may_launch and launching.recover(ports, fleet, stored):
            stored = ports.state.read()
        snapshot = observe(ports, fleet, stored, invocation)
        log_notes(ports, snapshot)
        return apply(ports, fleet, snapshot, decision(snapshot, fleet), invocation, holder)


@contextmanager
def _lease(ports: Ports, invocation: Invocation) -> Iterator[str]:
    """Hold the lease, polling each second while another pass has it; yield the name it is held under.

    AWS may deliver one event twice, with one request id: the name says which execution holds it, or two would.
    """
    owner = f"{invocation.pass_id}/{ports.new_id()}"
    patience = LEASE_WAIT_OF_A_PERSON_SECONDS if invocation.by_a_person else LEASE_WAIT_SECONDS
    began_at = ports.clock()
    while not ports.lease.acquire(owner, now=ports.clock(), until=ports.clock() + LEASE_SECONDS):
        if ports.clock() - began_at >= patience:
            raise LeaseHeldError(f"another pass held the lease for {patience:g} s")
        ports.sleep(1.0)
    try:
        if invocation.ends_at - ports.clock() < STEP_RESERVE_SECONDS:
            raise DeadlineError("the lease came too late for this invocation")
        yield owner
    finally:
        ports.lease.release(owner)
