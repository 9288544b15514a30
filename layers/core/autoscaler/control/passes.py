"""The whole idea: hold the lease, observe, decide, apply."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from autoscaler.control import launches
from autoscaler.control.apply import apply
from autoscaler.control.observe import observe, observe_without_instances
from autoscaler.control.report import Outcome, Report, Result
from autoscaler.domain import decide
from autoscaler.domain.learning import learn
from autoscaler.domain.metrics import Datum, measure
from autoscaler.domain.model import Fleet, Pool
from autoscaler.domain.numbers import LEASE_SECONDS, LEASE_WAIT_OF_A_PERSON_SECONDS, LEASE_WAIT_SECONDS, STEP_RESERVE_SECONDS
from autoscaler.domain.orders import DrainNodes, DrainSome, LaunchSome
from autoscaler.domain.plan import Cordon, Plan
from autoscaler.domain.reasons import Reason
from autoscaler.domain.situation import assess
from autoscaler.domain.snapshot import Snapshot
from autoscaler.errors import ConflictError, DeadlineError, LeaseHeldError
from autoscaler.ports import Book, Ports

Decision = Callable[[Snapshot, Fleet], Plan]
Settling = Callable[[Ports, Mapping[str, Pool], Book], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One invocation: its id, when it must have ended, and whether it may act."""

    invocation: str
    ends_at: float
    dry_run: bool = False
    by_a_person: bool = False


def scale_up(ports: Ports, fleet: Fleet, turn: Turn) -> list[Report]:
    """Bring back and launch what the queue needs."""
    return [_one_pass(ports, fleet, turn, decide.scale_up, turn.invocation, settle_first=launches.recover)]


def scale_down(ports: Ports, fleet: Fleet, turn: Turn) -> list[Report]:
    """Cordon what nothing needs, let it settle without holding the lease, look again, and give up what stayed idle."""
    first = _one_pass(ports, fleet, turn, decide.scale_down, turn.invocation)
    if turn.dry_run or not _waits_for_second_look(first):
        return [first]
    settle = max(pool.drain_settle_seconds for pool in fleet.pools.values())
    if turn.ends_at - ports.clock() < settle + 2 * STEP_RESERVE_SECONDS:
        return [first]
    ports.sleep(settle)
    return [first, _one_pass(ports, fleet, turn, decide.scale_down, f"{turn.invocation}-2")]


def carry_out(ports: Ports, fleet: Fleet, turn: Turn, order: LaunchSome | DrainSome | DrainNodes) -> list[Report]:
    """Do what a person asked for, within the limits."""
    if isinstance(order, LaunchSome):
        launch_some = partial(decide.launch_some, order=order)
        return [_one_pass(ports, fleet, turn, launch_some, turn.invocation, settle_first=launches.recover)]
    return [_one_pass(ports, fleet, turn, partial(decide.drain_for_a_person, order=order), turn.invocation)]


def publish(ports: Ports, fleet: Fleet, turn: Turn) -> list[Datum]:
    """Measure what is there, and learn from what changed since the last look. Decides nothing, needs no lease."""
    snapshot = observe_without_instances(ports, ports.ledger.read(), turn.invocation)
    situation = assess(snapshot, fleet)
    waits: dict[tuple[str, str], tuple[float, ...]] = {}
    for controller in snapshot.controllers:
        lesson = learn(situation, controller)
        waits |= {(controller, pool): seconds for pool, seconds in lesson.job_waits.items()}
        if not lesson.learned.tells_what(snapshot.learned[controller]):
            try:
                ports.notebook.save_learned(controller, lesson.learned)
            except ConflictError:
                # An invocation that overlapped this one learned the same first: its samples count, ours would be twice.
                ports.log("learned_elsewhere", controller=controller)
    for view in snapshot.controllers.values():
        _log_view_notes(ports, view.name, view.problem, view.set_aside)
    return measure(situation, waits)


def _waits_for_second_look(report: Report) -> bool:
    """Tell whether anything was cordoned, or was drained already: otherwise a second look could change nothing."""
    cordoned = any(isinstance(r.step, Cordon) and r.outcome is Outcome.DONE for r in report.results)
    return cordoned or any(held.reason is Reason.SECOND_LOOK for held in report.plan.held)


def _nothing_to_settle(_ports: Ports, _pools: Mapping[str, Pool], _book: Book) -> bool:
    return False


def _one_pass(
    ports: Ports, fleet: Fleet, turn: Turn, decision: Decision, pass_id: str, *, settle_first: Settling = _nothing_to_settle
) -> Report:
    """Take one pass. ``settle_first``: only what may launch goes on with launches whose outcome is not known."""
    if turn.dry_run:
        plan = decision(observe(ports, fleet, ports.ledger.read(), pass_id, turn.invocation), fleet)
        planned = tuple(Result(step=step, outcome=Outcome.PLANNED) for step in plan.steps)
        return Report(plan=plan, results=planned, dry_run=True)
    with _lease(ports, pass_id, turn):
        book = ports.ledger.read()
        if settle_first(ports, fleet.pools, book):
            book = ports.ledger.read()
        snapshot = observe(ports, fleet, book, pass_id, turn.invocation)
        for view in snapshot.controllers.values():
            _log_view_notes(ports, view.name, view.problem, view.set_aside)
        return apply(ports, fleet, snapshot, decision(snapshot, fleet), turn.ends_at)


@contextmanager
def _lease(ports: Ports, owner: str, turn: Turn) -> Iterator[None]:
    """Hold the lease, polling each second while another pass has it."""
    patience = LEASE_WAIT_OF_A_PERSON_SECONDS if turn.by_a_person else LEASE_WAIT_SECONDS
    began_at = ports.clock()
    while not ports.lease.acquire(owner, now=ports.clock(), until=ports.clock() + LEASE_SECONDS):
        if ports.clock() - began_at >= patience:
            raise LeaseHeldError(f"another pass held the lease for {patience:g} s")
        ports.sleep(1.0)
    try:
        if turn.ends_at - ports.clock() < STEP_RESERVE_SECONDS:
            raise DeadlineError("the lease came too late for this invocation")
        yield
    finally:
        ports.lease.release(owner)


def _log_view_notes(ports: Ports, controller: str, problem: str | None, set_aside: tuple[str, ...]) -> None:
    if problem:
        ports.log("controller_incomplete", controller=controller, problem=problem)
    if set_aside:
        ports.log("set_aside", controller=controller, count=len(set_aside), first=set_aside[0])
