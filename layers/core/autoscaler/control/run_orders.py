"""Orders runs, carries each order on look by look, and ends it: what is started is written down before Jenkins is asked.

Orders are written down without the lease: of two at once the second one loses, by the order's version, and does nothing. Cut off after
that, a build may have been started: the next look finds it by its parameter, or knows that there is none.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from autoscaler.build_ports import Builds, RunOrderStore
from autoscaler.control.apply import STEP_RESERVE_SECONDS
from autoscaler.control.events import note
from autoscaler.control.invocation import Invocation
from autoscaler.control.order_lookups import OrderLookups, lookups
from autoscaler.control.report import Report
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.memory import Memory
from autoscaler.domain.facts.snapshot import MINUTE_SECONDS
from autoscaler.domain.facts.started_builds import RunOrder, TryState, Verdict, job_path
from autoscaler.domain.report.ordered import Outcome, outcome_of, summary_of
from autoscaler.domain.report.told import Event
from autoscaler.domain.run_orders.carrying_on import Action, Cancel, Start, Stop, carry_on, given_up, judge
from autoscaler.domain.situation.builds import may_have_orders
from autoscaler.errors import AutoscalerError, ConfigError, ConflictError, RefusedBuildError
from autoscaler.ports import Ports

STARTS_A_LOOK = 30
_PUT_TOGETHER = "Jenkins put it together with another run that waits in its queue: the job declares no"


def carry_orders_on(ports: Ports, fleet: Fleet, invocation: Invocation, reports: Sequence[Report]) -> list[Outcome]:
    """Carry every open order on after a pass, by what that knows of agents that have gone; return how those ended that have.

    If the key `runs` has left the fleet file, what was started is followed to its end, and nothing more is started.
    """
    if ports.run_orders is None or not reports or not may_have_orders(fleet, reports[-1].plan.memory):
        return []
    memory, starts = reports[-1].plan.memory, STARTS_A_LOOK if fleet.runs else 0
    keeper = RunKeeper(ports=ports, store=ports.run_orders, ends_at=invocation.ends_at, memory=memory, starts=starts)
    keeper.carry_on_all()
    return keeper.outcomes


@dataclass(slots=True, kw_only=True)
class RunKeeper:
    """Carries orders on. ``memory``: what the pass before it knew of nodes and lost builds.

    ``queued``: controllers and queue items of builds that were started and are not known to have begun.
    """

    ports: Ports
    store: RunOrderStore
    ends_at: float
    memory: Memory = field(default_factory=Memory)
    starts: int = STARTS_A_LOOK  # of builds in one look; 0: the fleet file lets nobody order runs any more, and none is started
    outcomes: list[Outcome] = field(default_factory=list)  # of orders that have ended
    queued: set[tuple[str, int | None]] = field(default_factory=set)

    def carry_on_all(self) -> None:
        """Carry every open order on. What fails of one is made good in the next look, and keeps no other one waiting.

        Each look begins with another one, so that none has to wait for ever if time or requests do not suffice for all.
        """
        orders = self.store.open_orders()
        parts = [part for order in orders for part in order.parts if part.last and part.last.state is TryState.QUEUED]
        self.queued |= {(part.target.controller, part.last.item) for part in parts if part.last}
        asking = lookups(self.ports, self.memory, orders, self._is_time)
        first = int(self.ports.clock() // MINUTE_SECONDS) % max(1, len(orders))
        for order in (*orders[first:], *orders[:first]):
            if not self._is_time():
                return
            try:
                self.carry_on(order, asking)
            except ConflictError:
                self.ports.log("run_order_changed_meanwhile", order=order.id)
            except AutoscalerError as error:
                self.ports.log("run_order_not_carried_on", order=order.id, error=f"{type(error).__name__}: {error}")

    def carry_on(self, order: RunOrder, asking: OrderLookups | None = None) -> RunOrder:
        """Carry one order on: look, write down what will be done, do it, and write down what came of it."""
        now = self.ports.clock()
        asking = asking or lookups(self.ports, self.memory, [order], self._is_time)
        judged = judge(given_up(order, self.ports.builds, now), asking.facts(order), now)
        following = carry_on(judged, now, self.starts)
        written = self._write(order, following.order)
        if not written.is_open:
            self._note_end(written)
            return written
        return self._write(written, self._act(written, following.actions))

    def _write(self, before: RunOrder, after: RunOrder) -> RunOrder:
        return before if after == before else self.store.change_order(after)

    def _note_end(self, order: RunOrder) -> None:
        outcome = outcome_of(order)
        if outcome is not None:
            self.outcomes.append(outcome)
        self._note(order, f"run-{outcome}", "", summary_of(order))

    def _note(self, order: RunOrder, what: str, where: str, detail: str, *, failed: bool = False) -> None:
        event = Event(at=self.ports.clock(), by=f"run {order.id}", what=what, where=where, subject=order.job, detail=detail)
        note(self.ports, [replace(event, outcome="failed") if failed else event])

    def _act(self, order: RunOrder, actions: Iterable[Action]) -> RunOrder:
        for action in actions:
            if not self._is_time():
                break
            try:
                order = self._act_once(order, action)
            except AutoscalerError as error:
                # What may have been done is looked for in the next looks; what surely was not, is done then.
                controller = action.target.controller
                self.ports.log("run_step_failed", order=order.id, controller=controller, error=f"{type(error).__name__}: {error}")
        return order

    def _act_once(self, order: RunOrder, action: Action) -> RunOrder:
        builds = self.ports.builds[action.target.controller]
        where = f"{action.target.controller}/{action.target.pool}"
        match action:
            case Start():
                return self._start(order, action, builds, where)
            case Stop():
                builds.stop(action.run)
                self._note(order, "stop-run", where, action.run)
            case Cancel():
                builds.cancel(action.item)
                self._note(order, "cancel-run", where, f"queue item {action.item}")
        return order

    def _start(self, order: RunOrder, action: Start, builds: Builds, where: str) -> RunOrder:
        own = {order.label_parameter: action.target.label, order.run_parameter: action.try_id}
        try:
            item = builds.start(job_path(order.job), dict(order.parameters) | own)
        except (RefusedBuildError, ConfigError) as error:
            return self._refused(order, action, where, str(error))
        key = action.target.controller, item
        if key in self.queued:  # Jenkins puts equal ones together: one build must not count for two runs
            return self._refused(order, action, where, f"{_PUT_TOGETHER} {order.run_parameter} any more, which tells its builds apart")
        self.queued.add(key)
        self._note(order, "start-run", where, f"{action.try_id}: queue item {item}")
        return _with_try(order, action.part, state=TryState.QUEUED, item=item)

    def _refused(self, order: RunOrder, action: Start, where: str, why: str) -> RunOrder:
        self._note(order, "start-run", where, why, failed=True)
        refused = {"state": TryState.ENDED, "verdict": Verdict.REFUSED, "ended_at": self.ports.clock(), "why": why}
        return _with_try(order, action.part, **refused)

    def _is_time(self) -> bool:
        return self.ends_at - self.ports.clock() >= STEP_RESERVE_SECONDS


def _with_try(order: RunOrder, number: int, **changes: object) -> RunOrder:
    part = order.parts[number]
    if part.last is None:
        return order
    parts = list(order.parts)
    parts[number] = part.with_last(replace(part.last, **changes))  # type: ignore[arg-type] # its own fields
    return replace(order, parts=tuple(parts))
