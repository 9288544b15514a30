"""Orders runs, carries each order on look by look, and ends it: what is started is written down before Jenkins is asked.

Orders are written down without the lease: of two at once the second one loses, by the order's version, and does nothing. Cut off after
that, a build may have been started: the next look finds it by its parameter, or knows that there is none.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from autoscaler.control.apply import STEP_RESERVE_SECONDS
from autoscaler.control.observe import Invocation
from autoscaler.control.outcomes import Report, note
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.memory import Memory
from autoscaler.domain.facts.runs import Item, ItemState, Run
from autoscaler.domain.facts.snapshot import MINUTE_SECONDS
from autoscaler.domain.facts.started_builds import Part, RunOrder, Try, TryState, Verdict, job_path
from autoscaler.domain.repair.lost_builds import FIND_AFTER_SECONDS
from autoscaler.domain.report.ordered import Outcome, outcome_of, summary_of
from autoscaler.domain.report.told import Event
from autoscaler.domain.run_orders.carrying_on import (
    Action,
    Cancel,
    Start,
    Stop,
    TryFacts,
    carry_on,
    entry_of_item,
    given_up,
    judge,
    lost_of,
    node_of,
)
from autoscaler.domain.situation.builds import may_have_orders
from autoscaler.errors import AutoscalerError, ConfigError, ConflictError, RefusedBuildError
from autoscaler.ports import Builds, Ports

# Looks up what Jenkins says of the builds of open orders: by the list of their job, and one by one what that does not show.
#
# Jenkins forgets what became of a queue item five minutes after the item left the queue. Whatever number of builds is open, the list of the
# job shows in each look which of them wait and which have begun, so that none goes unasked for so long.


# A small request each, of all orders together; the others in the next looks. The list of a job is read once a look.
TRIES_ASKED_A_LOOK = 100
TRIES_ASKED_AN_ORDER = 30
# Fewer builds are asked for one by one: the list of a job takes two requests or more, and is long.
FEW_TRIES = 5
# A controller's clock may be behind ours, and its list of builds would end too early.
CLOCKS_APART_SECONDS = 300.0

_Open = tuple[Part, Try]


@dataclass(slots=True, kw_only=True)
class OrderLookups:
    """The questions of one look about these orders."""

    ports: Ports
    memory: Memory
    is_time: Callable[[], bool]
    orders: Sequence[RunOrder]
    requests_left: int = TRIES_ASKED_A_LOOK
    jobs: dict[tuple[str, str], TryFacts] = field(default_factory=dict)  # as their controllers showed them
    failed: set[str] = field(default_factory=set)  # controllers that did not answer: not asked again in this look

    def facts(self, order: RunOrder) -> dict[str, TryFacts]:
        """Ask about the builds of an order that are open."""
        facts: dict[str, TryFacts] = {}
        for controller in {part.target.controller: None for part in order.parts}:
            if controller in self.failed or controller not in self.ports.builds or not self.is_time():
                continue
            try:
                self._ask(order, controller, facts)
            except AutoscalerError as error:
                self.failed.add(controller)
                self.ports.log("run_not_read", controller=controller, order=order.id, error=f"{type(error).__name__}: {error}")
        return facts

    def _ask(self, order: RunOrder, controller: str, facts: dict[str, TryFacts]) -> None:
        tries = [(part, part.last) for part in _open_parts(order) if part.last and part.target.controller == controller]
        is_unanswered = any(one.item is None and self.ports.clock() - one.at >= FIND_AFTER_SECONDS for _, one in tries)
        if len(tries) > FEW_TRIES or is_unanswered:
            facts |= self._listed(tries, self._job(order, controller))
        # What was not answered has no name in Jenkins by which it could be asked for alone.
        unshown = [(part, one) for part, one in tries if one.id not in facts and one.state is not TryState.WRITTEN]
        for part, one in _in_turn(unshown, order, self.ports.clock()):
            if self.requests_left <= 0 or not self.is_time():
                break
            self.requests_left -= 1
            facts[one.id] = self._alone(order, part, one)

    def _listed(self, tries: Iterable[_Open], seen: TryFacts) -> dict[str, TryFacts]:
        shown = {one.id: self._by_list(part, one, seen) for part, one in tries}
        return {try_id: facts for try_id, facts in shown.items() if facts is not None}

    def _by_list(self, part: Part, one: Try, seen: TryFacts) -> TryFacts | None:
        """Say what the job's list shows of a build; None if it shows nothing, so that the build has to be asked for alone."""
        if one.state is TryState.WRITTEN:
            return seen
        if one.state is TryState.RUNNING:
            entries = seen.job.entries if seen.job else ()
            run = next((entry.build for entry in entries if entry.run == one.run and entry.build), None)
            return self._running(part, one, run) if run else None
        entry = entry_of_item(one, seen.job)
        if entry is None:
            return None
        return TryFacts(item=Item(state=ItemState.STARTED if entry.run else ItemState.WAITING, run=entry.run))

    def _alone(self, order: RunOrder, part: Part, one: Try) -> TryFacts:
        builds = self.ports.builds[part.target.controller]
        if one.state is TryState.RUNNING or one.item is None:
            return self._running(part, one, builds.run(one.run))
        item = builds.item(one.item)
        if item.state is not ItemState.UNKNOWN:
            return TryFacts(item=item)
        return replace(self._job(order, part.target.controller), item=item)

    def _running(self, part: Part, one: Try, run: Run | None) -> TryFacts:
        return TryFacts(run=run, run_asked=True, lost=lost_of(part, self.memory.lost), node=node_of(part, one, self.memory))

    def _job(self, order: RunOrder, controller: str) -> TryFacts:
        """Read a job once a look, whatever number of orders it has: since the oldest build was started that is not known to have begun."""
        key = controller, order.job
        if key not in self.jobs:
            at = self.ports.clock()
            parts = (part for other in self.orders if other.job == order.job for part in _open_parts(other))
            tries = [part.last for part in parts if part.last and part.target.controller == controller]
            since = min((one.at for one in tries if one.state is not TryState.RUNNING), default=at)
            shown = self.ports.builds[controller].job(job_path(order.job), since - CLOCKS_APART_SECONDS)
            self.jobs[key] = TryFacts(job=shown, job_asked=True, job_at=at)
        return self.jobs[key]


def _open_parts(order: RunOrder) -> Iterable[Part]:
    return (part for part in order.parts if part.last is not None and part.last.is_open)


def _in_turn(tries: Sequence[_Open], order: RunOrder, now: float) -> list[_Open]:
    """Choose the builds that are asked for one by one. First come those that Jenkins will forget; running ones take turns by their place.

    Their places stay when others end, so that each has its turn within as many looks as the order has thirties.
    """
    number = {part.last.id: place for place, part in enumerate(order.parts) if part.last is not None}
    first = int(now // MINUTE_SECONDS) * TRIES_ASKED_AN_ORDER % max(1, len(order.parts))
    waiting = sorted((item for item in tries if item[1].state is not TryState.RUNNING), key=lambda item: item[1].at)
    running = [item for item in tries if item[1].state is TryState.RUNNING]
    running.sort(key=lambda item: (number[item[1].id] - first) % len(order.parts))
    return [*waiting, *running][:TRIES_ASKED_AN_ORDER]


# Orders runs, carries them on and ends them.


STARTS_A_LOOK = 30
_PUT_TOGETHER = "Jenkins put it together with another run that waits in its queue: the job declares no"


def carry_orders_on(ports: Ports, fleet: Fleet, invocation: Invocation, reports: Sequence[Report]) -> list[Outcome]:
    """Carry every open order on after a pass, by what that knows of agents that have gone; return how those ended that have.

    If the key `runs` has left the fleet file, what was started is followed to its end, and nothing more is started.
    """
    if not reports or not may_have_orders(fleet, reports[-1].plan.memory):
        return []
    memory, starts = reports[-1].plan.memory, STARTS_A_LOOK if fleet.runs else 0
    keeper = RunKeeper(ports=ports, ends_at=invocation.ends_at, memory=memory, starts=starts)
    keeper.carry_on_all()
    return keeper.outcomes


@dataclass(slots=True, kw_only=True)
class RunKeeper:
    """Carries orders on. ``memory``: what the pass before it knew of nodes and lost builds.

    ``queued``: controllers and queue items of builds that were started and are not known to have begun.
    """

    ports: Ports
    ends_at: float
    memory: Memory = field(default_factory=Memory)
    starts: int = STARTS_A_LOOK  # of builds in one look; 0: the fleet file lets nobody order runs any more, and none is started
    outcomes: list[Outcome] = field(default_factory=list)  # of orders that have ended
    queued: set[tuple[str, int | None]] = field(default_factory=set)

    def carry_on_all(self) -> None:
        """Carry every open order on. What fails of one is made good in the next look, and keeps no other one waiting.

        Each look begins with another one, so that none has to wait for ever if time or requests do not suffice for all.
        """
        orders = self.ports.run_orders.open_orders()
        parts = [part for order in orders for part in order.parts if part.last and part.last.state is TryState.QUEUED]
        self.queued |= {(part.target.controller, part.last.item) for part in parts if part.last}
        asking = self._asking(orders)
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
        facts = (asking or self._asking([order])).facts(order)
        following = carry_on(judge(given_up(order, self.ports.builds, now), facts, now), now, self.starts)
        written = self._write(order, following.order)
        if written.is_open:
            return self._write(written, self._act(written, following.actions))
        if outcome := outcome_of(written):
            self.outcomes.append(outcome)
        self._note(written, f"run-{outcome}", "", summary_of(written))
        return written

    def _asking(self, orders: Sequence[RunOrder]) -> OrderLookups:
        return OrderLookups(ports=self.ports, memory=self.memory, is_time=self._is_time, orders=orders)

    def _write(self, before: RunOrder, after: RunOrder) -> RunOrder:
        return before if after == before else self.ports.run_orders.change_order(after)

    def _note(self, order: RunOrder, what: str, where: str, detail: str, *, failed: bool = False) -> None:
        event = Event(at=self.ports.clock(), by=f"run {order.id}", what=what, where=where, subject=order.job, detail=detail)
        note(self.ports, [replace(event, outcome="failed") if failed else event])

    def _act(self, order: RunOrder, actions: Iterable[Action]) -> RunOrder:
        for action in actions:
            if not self._is_time():
                break
            controller, where = action.target.controller, f"{action.target.controller}/{action.target.pool}"
            builds = self.ports.builds[controller]
            try:
                match action:
                    case Start():
                        order = self._start(order, action, builds, where)
                    case Stop():
                        builds.stop(action.run)
                        self._note(order, "stop-run", where, action.run)
                    case Cancel():
                        builds.cancel(action.item)
                        self._note(order, "cancel-run", where, f"queue item {action.item}")
            except AutoscalerError as error:
                # What may have been done is looked for in the next looks; what surely was not, is done then.
                self.ports.log("run_step_failed", order=order.id, controller=controller, error=f"{type(error).__name__}: {error}")
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
        now = self.ports.clock()
        return _with_try(order, action.part, state=TryState.ENDED, verdict=Verdict.REFUSED, ended_at=now, why=why)

    def _is_time(self) -> bool:
        return self.ends_at - self.ports.clock() >= STEP_RESERVE_SECONDS


def _with_try(order: RunOrder, number: int, **changes: object) -> RunOrder:
    part = order.parts[number]
    if part.last is None:
        return order
    parts = list(order.parts)
    parts[number] = part.with_last(replace(part.last, **changes))  # type: ignore[arg-type] # its own fields
    return replace(order, parts=tuple(parts))
