"""The whole idea: hold the lease, observe, decide, apply."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from autoscaler.control import launches
from autoscaler.control.apply import STEP_RESERVE_SECONDS, apply
from autoscaler.control.observe import log_notes, observe, without
from autoscaler.control.report import Outcome, Report, Result
from autoscaler.domain import commands, decide
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.orders import DrainNodes, DrainSome, LaunchSome
from autoscaler.domain.facts.plan import Cordon, Plan
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import RecordState, Snapshot
from autoscaler.domain.learn import assess
from autoscaler.domain.repair.interruption import Announced, InstanceEvent, builds_at_risk
from autoscaler.errors import DeadlineError, LeaseHeldError, TransientError
from autoscaler.ports import Book, Ports

# Lease > function time-out (55 s; 68 s where it looks several times a minute), so that a holder that is cut off cannot be overlapped by
# its own late call.
LEASE_SECONDS = 70.0
LEASE_WAIT_SECONDS = 25.0
LEASE_WAIT_OF_A_PERSON_SECONDS = 45.0

Decision = Callable[[Snapshot, Fleet], Plan]
Settling = Callable[[Ports, Fleet, Book], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One look of an invocation: which, when the invocation must have ended, and whether it may act."""

    invocation: str
    ends_at: float
    look: int = 1
    dry_run: bool = False
    by_a_person: bool = False

    @property
    def pass_id(self) -> str:
        """The name of its pass: the invocation's, and of a later look a name of its own."""
        return self.invocation if self.look == 1 else f"{self.invocation}.{self.look}"


def scale_up(ports: Ports, fleet: Fleet, turn: Turn) -> list[Report]:
    """Bring back and launch what the queue needs. A first look without the lease tells whether there is anything to do."""
    book = ports.ledger.read()
    glance = plan_only(ports, fleet, turn, decide.scale_up, book)
    if turn.dry_run or not (glance.plan.steps or launches.unfinished(ports, book)):
        return [glance]
    return [one_pass(without(ports, glance.failed), fleet, turn, decide.scale_up, settle_first=launches.recover)]


def scale_down(ports: Ports, fleet: Fleet, turn: Turn) -> list[Report]:
    """Cordon what nothing needs, let it settle without holding the lease, look again, and give up what stayed idle."""
    first = one_pass(ports, fleet, turn, decide.scale_down)
    if turn.dry_run or not _waits_for_second_look(first):
        return [first]
    settle = max(pool.drain_settle_seconds for pool in fleet.pools.values())
    if turn.ends_at - ports.clock() < settle + 2 * STEP_RESERVE_SECONDS:
        return [first]
    ports.sleep(settle)
    try:
        return [first, one_pass(without(ports, first.failed), fleet, turn, decide.scale_down, part="-2")]
    except TransientError as error:
        # The next tick looks again; what the first half did is done, and its report must go out.
        ports.log("second_look_failed", error=f"{type(error).__name__}: {error}")
        return [first]


def carry_out(ports: Ports, fleet: Fleet, turn: Turn, order: LaunchSome | DrainSome | DrainNodes) -> list[Report]:
    """Do what a person asked for, within the limits."""
    if isinstance(order, LaunchSome):
        launch_some = partial(commands.launch_some, order=order)
        return [one_pass(ports, fleet, turn, launch_some, settle_first=launches.recover)]
    return [one_pass(ports, fleet, turn, partial(commands.drain_for_a_person, order=order))]


def handle(ports: Ports, fleet: Fleet, turn: Turn, event: InstanceEvent) -> tuple[list[Report], tuple[str, ...]]:
    """Act on an announcement of EC2; return what was done, and the builds at risk. Nothing of an instance that is not ours."""
    identity = ports.compute.identity(event.instance_id)
    if identity is None or identity.fleet != fleet.name:
        return [], ()
    book = ports.ledger.read()
    if not any(record.instance_id == event.instance_id and record.state is RecordState.REGISTERED for record in book.records):
        return [], ()  # it has no node, or we gave it up ourselves: the schedule sees to it
    decision = partial(commands.handle, event=event)
    if event.kind is Announced.STATE:  # deleting a node needs the lease; marking one does not
        return [one_pass(ports, fleet, turn, decision)], ()
    snapshot = observe(ports, fleet, book, turn.pass_id, turn.invocation)
    log_notes(ports, snapshot)
    report = apply(ports, fleet, snapshot, decision(snapshot, fleet), turn.ends_at)
    return [report], builds_at_risk(assess(snapshot, fleet), event)


def plan_only(ports: Ports, fleet: Fleet, turn: Turn, decision: Decision, book: Book) -> Report:
    """Observe and decide, and leave it at that."""
    snapshot = observe(ports, fleet, book, turn.pass_id, turn.invocation)
    log_notes(ports, snapshot)
    plan = decision(snapshot, fleet)
    planned = tuple(Result(step=step, outcome=Outcome.PLANNED) for step in plan.steps)
    return Report(plan=plan, results=planned, dry_run=turn.dry_run)


def _waits_for_second_look(report: Report) -> bool:
    """Tell whether anything was cordoned, or was drained already: otherwise a second look could change nothing."""
    cordoned = any(isinstance(r.step, Cordon) and r.outcome is Outcome.DONE for r in report.results)
    return cordoned or any(held.reason is Reason.SECOND_LOOK for held in report.plan.held)


def _nothing_to_settle(_ports: Ports, _fleet: Fleet, _book: Book) -> bool:
    return False


def one_pass(
    ports: Ports, fleet: Fleet, turn: Turn, decision: Decision, *, part: str = "", settle_first: Settling = _nothing_to_settle
) -> Report:
    """Take one pass. ``part``: of a turn that takes two. ``settle_first``: only what may launch goes on with launches not yet answered."""
    pass_id = f"{turn.pass_id}{part}"
    if turn.dry_run:
        return plan_only(ports, fleet, turn, decision, ports.ledger.read())
    with _lease(ports, pass_id, turn) as holder:
        book = ports.ledger.read()
        if settle_first(ports, fleet, book):
            book = ports.ledger.read()
        snapshot = observe(ports, fleet, book, pass_id, turn.invocation)
        log_notes(ports, snapshot)
        return apply(ports, fleet, snapshot, decision(snapshot, fleet), turn.ends_at, holder)


@contextmanager
def _lease(ports: Ports, pass_id: str, turn: Turn) -> Iterator[str]:
    """Hold the lease, polling each second while another pass has it; yield the name it is held under.

    AWS may deliver one event twice, with one request id: the name says which execution holds it, or two would.
    """
    owner = f"{pass_id}/{ports.new_id()}"
    patience = LEASE_WAIT_OF_A_PERSON_SECONDS if turn.by_a_person else LEASE_WAIT_SECONDS
    began_at = ports.clock()
    while not ports.lease.acquire(owner, now=ports.clock(), until=ports.clock() + LEASE_SECONDS):
        if ports.clock() - began_at >= patience:
            raise LeaseHeldError(f"another pass held the lease for {patience:g} s")
        ports.sleep(1.0)
    try:
        if turn.ends_at - ports.clock() < STEP_RESERVE_SECONDS:
            raise DeadlineError("the lease came too late for this invocation")
        yield owner
    finally:
        ports.lease.release(owner)
