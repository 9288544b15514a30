"""Looks up what Jenkins says of the builds of open orders: by the list of their job, and one by one what that does not show.

Jenkins forgets what became of a queue item five minutes after the item left the queue. Whatever number of builds is open, the list of the
job shows in each look which of them wait and which have begun, so that none goes unasked for so long.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from autoscaler.build_ports import Builds
from autoscaler.domain.facts.memory import Memory
from autoscaler.domain.facts.runs import Entry, Item, ItemState, Job, Run
from autoscaler.domain.facts.snapshot import MINUTE_SECONDS
from autoscaler.domain.facts.started_builds import Part, RunOrder, Try, TryState, job_path
from autoscaler.domain.repair.lost_builds import FIND_AFTER_SECONDS
from autoscaler.domain.run_orders.carrying_on import TryFacts, entry_of_item, lost_of, node_of
from autoscaler.errors import AutoscalerError
from autoscaler.ports import Ports

# A small request each, of all orders together; the others in the next looks. The list of a job is read once a look.
TRIES_ASKED_A_LOOK = 100
TRIES_ASKED_AN_ORDER = 30
# Fewer builds are asked for one by one: the list of a job takes two requests or more, and is long.
FEW_TRIES = 5
# A controller's clock may be behind ours, and its list of builds would end too early.
CLOCKS_APART_SECONDS = 300.0

_Open = tuple[Part, Try]


@dataclass(frozen=True, slots=True, kw_only=True)
class _JobSeen:
    """A job as its controller showed it at a time. ``runs``: its builds, by path."""

    job: Job | None
    at: float
    runs: dict[str, Run]


@dataclass(slots=True, kw_only=True)
class OrderLookups:
    """What is asked in one look. ``since``: when the oldest build that is not known to have begun was started, of each job."""

    ports: Ports
    memory: Memory
    is_time: Callable[[], bool]
    since: dict[tuple[str, str], float]
    requests_left: int = TRIES_ASKED_A_LOOK
    jobs: dict[tuple[str, str], _JobSeen] = field(default_factory=dict)
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
        tries = _open_tries(order, controller)
        if len(tries) > FEW_TRIES or any(self._is_unanswered(one) for _, one in tries):
            facts |= self._listed(tries, self._job(order, controller))
        # What was not answered has no name in Jenkins by which it could be asked for alone.
        unshown = [(part, one) for part, one in tries if one.id not in facts and one.state is not TryState.WRITTEN]
        for part, one in _in_turn(unshown, order, self.ports.clock()):
            if self.requests_left <= 0 or not self.is_time():
                break
            self.requests_left -= 1
            facts[one.id] = self._alone(order, part, one)

    def _listed(self, tries: Iterable[_Open], seen: _JobSeen) -> dict[str, TryFacts]:
        shown = {one.id: self._by_list(part, one, seen) for part, one in tries}
        return {try_id: facts for try_id, facts in shown.items() if facts is not None}

    def _is_unanswered(self, one: Try) -> bool:
        return one.item is None and self.ports.clock() - one.at >= FIND_AFTER_SECONDS

    def _by_list(self, part: Part, one: Try, seen: _JobSeen) -> TryFacts | None:
        """Say what the job's list shows of a build; None if it shows nothing, so that the build has to be asked for alone."""
        if one.state is TryState.WRITTEN:
            return TryFacts(job=seen.job, job_asked=True, job_at=seen.at)
        if one.state is TryState.RUNNING:
            return self._running(part, one, seen.runs[one.run]) if one.run in seen.runs else None
        entry = entry_of_item(one, seen.job)
        return TryFacts(item=_item_of(entry)) if entry is not None else None

    def _alone(self, order: RunOrder, part: Part, one: Try) -> TryFacts:
        builds = self.ports.builds[part.target.controller]
        if one.state is TryState.RUNNING or one.item is None:
            return self._running(part, one, builds.run(one.run))
        item = builds.item(one.item)
        if item.state is not ItemState.UNKNOWN:
            return TryFacts(item=item)
        seen = self._job(order, part.target.controller)
        return TryFacts(item=item, job=seen.job, job_asked=True, job_at=seen.at)

    def _running(self, part: Part, one: Try, run: Run | None) -> TryFacts:
        return TryFacts(run=run, run_asked=True, lost=lost_of(part, self.memory.lost), node=node_of(part, one, self.memory))

    def _job(self, order: RunOrder, controller: str) -> _JobSeen:
        """Read a job once a look, whatever number of orders it has."""
        key = controller, order.job
        if key not in self.jobs:
            at, builds = self.ports.clock(), self.ports.builds[controller]
            self.jobs[key] = _seen(builds, order.job, self.since.get(key, at) - CLOCKS_APART_SECONDS, at)
        return self.jobs[key]


def lookups(ports: Ports, memory: Memory, orders: Iterable[RunOrder], is_time: Callable[[], bool]) -> OrderLookups:
    """Make what asks about these orders in one look."""
    since: dict[tuple[str, str], float] = {}
    for order in orders:
        for part in _open_parts(order):
            if part.last and part.last.state is not TryState.RUNNING:
                key = part.target.controller, order.job
                since[key] = min(since.get(key, part.last.at), part.last.at)
    return OrderLookups(ports=ports, memory=memory, is_time=is_time, since=since)


def _open_tries(order: RunOrder, controller: str) -> list[_Open]:
    return [(part, part.last) for part in _open_parts(order) if part.last and part.target.controller == controller]


def _open_parts(order: RunOrder) -> Iterable[Part]:
    return (part for part in order.parts if part.last is not None and part.last.is_open)


def _seen(builds: Builds, job: str, since: float, at: float) -> _JobSeen:
    shown = builds.job(job_path(job), since)
    runs = {entry.run: entry.build for entry in shown.entries if entry.build is not None} if shown is not None else {}
    return _JobSeen(job=shown, at=at, runs=runs)


def _item_of(entry: Entry) -> Item:
    return Item(state=ItemState.STARTED if entry.run else ItemState.WAITING, run=entry.run)


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
