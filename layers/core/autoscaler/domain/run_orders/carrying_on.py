"""What has become of the builds of an order, and what is done next for it."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from autoscaler.domain.facts.memory import Memory
from autoscaler.domain.facts.runs import Entry, Interruption, Item, ItemState, Job, Run
from autoscaler.domain.facts.started_builds import FAILURES, LostBuild, LostFacts, Part, RunOrder, Target, Try, TryState, Until, Verdict
from autoscaler.domain.repair.lost_builds import FIND_AFTER_SECONDS, MISSING, is_lost
from autoscaler.domain.situation.states import DISCONNECT_GRACE_SECONDS

# What has become of the builds of an order, by what Jenkins says of each.


# Until EC2 shows that a machine has ended, a build that was lost with it looks like one that failed.
SETTLE_SECONDS = 120.0
# Where Jenkins does not show a build any more, it may be about to show it again, as after a restart.
UNSEEN_SECONDS = 300.0
_PASSED = {"SUCCESS": Verdict.PASSED, "UNSTABLE": Verdict.UNSTABLE, "NOT_BUILT": Verdict.FAILED}
_GONE = "its job is not there any more"


@dataclass(frozen=True, slots=True, kw_only=True)
class TryFacts:
    """What Jenkins says of one build; None: it was not asked, or shows nothing of the kind. ``lost``: its agent has gone under it.

    ``job_at``: when the job was read; None: now. ``node``: on which the build was last seen, since Jenkins does not say it of a
    pipeline's run.
    """

    item: Item | None = None
    run: Run | None = None
    run_asked: bool = False
    job: Job | None = None
    job_asked: bool = False
    job_at: float | None = None
    lost: LostBuild | None = None
    node: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """An order by what is known now. ``unsent``: ids of tries that Jenkins surely does not have, though they are written."""

    order: RunOrder
    unsent: frozenset[str] = frozenset()


def judge(order: RunOrder, facts: Mapping[str, TryFacts], now: float) -> Judged:
    """Carry each open try on to what is known of it now."""
    parts, unsent = [], set()
    for part in order.parts:
        last = part.last
        if last is None or not last.is_open or last.id not in facts:
            parts.append(part)
            continue
        told = facts[last.id]
        carried, job = _carried_on(last, told, order, now), told.job
        # Jenkins surely has nothing of it, though it may have been sent: it was not found where it would be by now.
        if carried.state is TryState.WRITTEN and job and job.is_whole and _is_old_enough(last, told, now):
            unsent.add(last.id)
        parts.append(part.with_last(carried))
    return Judged(order=replace(order, parts=tuple(parts)), unsent=frozenset(unsent))


def _carried_on(one: Try, facts: TryFacts, order: RunOrder, now: float) -> Try:
    match one.state:
        case TryState.WRITTEN:
            if not facts.job_asked:
                return one
            if facts.job is None:
                return _ended(one, Verdict.REFUSED, now, _GONE)
            if entry := _entry(one, facts.job, order):
                return _found(one, entry, now)
            why = "Jenkins did not answer, and the job has had too many builds since to find it among them"
            is_lost_sight_of = _is_old_enough(one, facts, now) and not facts.job.is_whole
            return _ended(one, Verdict.IN_DOUBT, now, why) if is_lost_sight_of else one
        case TryState.QUEUED:
            return _queued(one, facts, order, now)
        case _:
            return _running(one, facts, order, now)


def _is_old_enough(one: Try, facts: TryFacts, now: float) -> bool:
    """Tell whether Jenkins would have shown a build when its job was read, had the request for it arrived."""
    return (now if facts.job_at is None else facts.job_at) - one.at >= FIND_AFTER_SECONDS


def _queued(one: Try, facts: TryFacts, order: RunOrder, now: float) -> Try:
    if facts.item is None or facts.item.state is ItemState.WAITING:
        return one
    if facts.item.state is ItemState.STARTED and facts.item.run:
        return _began(one, facts.item.run, now)
    if facts.item.state is ItemState.CANCELLED:
        return _ended(one, Verdict.STOPPED if order.is_over else Verdict.ABORTED, now, "it was taken out of the queue")
    # Jenkins does not know it among its items any more.
    if not facts.job_asked or (facts.job_at or now) < one.at:
        return one
    if facts.job is None:
        return _ended(one, Verdict.IN_DOUBT, now, _GONE)
    if (entry := entry_of_item(one, facts.job)) is not None:
        return _found(one, entry, now)
    if facts.job.is_whole:
        return _ended(one, Verdict.LOST, now, "Jenkins has dropped it from its queue")
    return _ended(one, Verdict.IN_DOUBT, now, "it has left Jenkins' queue, and the job has had too many builds since to find it among them")


def _running(one: Try, facts: TryFacts, order: RunOrder, now: float) -> Try:
    run = facts.run
    if run is None:
        if not facts.run_asked:
            return one
        seen_at = one.ended_at if one.ended_at is not None else now
        if now - seen_at < UNSEEN_SECONDS:
            return replace(one, ended_at=seen_at)
        return _ended(replace(one, ended_at=seen_at), Verdict.IN_DOUBT, now, "Jenkins does not show it any more")
    shown = replace(one, node=run.node or facts.node or one.node, ended_at=None if run.building else (one.ended_at or now))
    if run.building:
        return shown
    if run.ended_at is not None:
        shown = replace(shown, took_seconds=max(0.0, run.ended_at - run.started_at))
    verdict = _verdict(shown, run, facts.lost, order, now)
    why = facts.lost.how if verdict is Verdict.LOST and facts.lost is not None else ""
    return shown if verdict is None else replace(shown, state=TryState.ENDED, verdict=verdict, why=why)


def _verdict(one: Try, run: Run, lost: LostBuild | None, order: RunOrder, now: float) -> Verdict | None:
    """Say how a build ended; None: that is not known yet."""
    if run.result in _PASSED:
        return _PASSED[run.result]
    if order.is_over and Interruption.PERSON in run.interruptions:
        return Verdict.STOPPED
    if Interruption.AGENT_GONE in run.interruptions:
        return Verdict.LOST
    if lost is not None and is_lost(lost, LostFacts(run=run, unit=run)):
        # Its agent may only be late after a restart of Jenkins.
        return None if lost.how == MISSING and now - lost.since_at < DISCONNECT_GRACE_SECONDS else Verdict.LOST
    if not run.interruptions and now - (one.ended_at or now) < SETTLE_SECONDS:
        return None
    return Verdict.ABORTED if run.result == "ABORTED" else Verdict.FAILED


def _entry(one: Try, job: Job, order: RunOrder) -> Entry | None:
    """Find what may have been sent by our parameter. A person who rebuilds it copies that: ours is the first that has it."""
    return min((entry for entry in job.entries if entry.has(order.run_parameter, one.id)), key=lambda entry: entry.item, default=None)


def entry_of_item(one: Try, job: Job | None) -> Entry | None:
    """Find a build by the queue item that Jenkins answered with, whatever its parameters claim."""
    return next((entry for entry in job.entries if entry.item == one.item), None) if job is not None else None


def _found(one: Try, entry: Entry, now: float) -> Try:
    queued = replace(one, state=TryState.QUEUED, item=entry.item)
    return _began(queued, entry.run, now) if entry.run else queued


def _began(one: Try, run: str, now: float) -> Try:
    return replace(one, state=TryState.RUNNING, run=run, began_at=now)


def _ended(one: Try, verdict: Verdict, now: float, why: str) -> Try:
    return replace(one, state=TryState.ENDED, verdict=verdict, ended_at=one.ended_at or now, why=why)


def given_up(order: RunOrder, controllers: Collection[str], now: float) -> RunOrder:
    """Give up the runs on controllers that the fleet file names no more: nobody can ask these."""
    return replace(
        order,
        parts=tuple(
            part if part.target.controller in controllers else _given_up(part, order, number, now)
            for number, part in enumerate(order.parts)
        ),
    )


def _given_up(part: Part, order: RunOrder, number: int, now: float) -> Part:
    why = f"the fleet file names no controller {part.target.controller} any more"
    if part.last is None:
        return _refused(part, order, number, now, why)
    return part.with_last(_ended(part.last, Verdict.IN_DOUBT, now, why)) if part.last.is_open else part


def _refused(part: Part, order: RunOrder, number: int, now: float, why: str) -> Part:
    """End a part of which Jenkins has nothing: no build is started for it."""
    last = part.last or Try(id=order.try_id(number), state=TryState.WRITTEN, at=now)
    return part.with_last(_ended(last, Verdict.REFUSED, now, why))


def lost_of(part: Part, lost: Mapping[str, LostBuild]) -> LostBuild | None:
    """Find what is followed of a part's build since its agent has gone."""
    last = part.last
    if last is None or not last.run:
        return None
    return next((one for one in lost.values() if one.controller == part.target.controller and one.unit == last.run), None)


def node_of(part: Part, one: Try, memory: Memory) -> str:
    """Find the node on which a build was seen in the last look; "" where it was on none."""
    session = memory.sessions.get(part.target.controller)
    return next((node for node, runs in session.busy.items() if one.run in runs), "") if session else ""


# What is done next for an order: builds that are started, stopped and cancelled, and when it has ended.


# An order that nobody ends keeps no pass busy for ever: what still runs then is left to run.
MOST_SECONDS = 14 * 86_400.0
NOBODY_MAY_ORDER = "it was not started: the fleet file has no key runs any more"


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Start a build. ``part``: its number in the order."""

    part: int
    target: Target
    try_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Stop a build that runs."""

    target: Target
    run: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """Take a build out of the queue."""

    target: Target
    item: int


Action = Start | Stop | Cancel


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """An order as it is to be written down, and what is done then."""

    order: RunOrder
    actions: tuple[Action, ...] = ()


def carry_on(judged: Judged, now: float, most_starts: int) -> Next:
    """Decide what is done next. What is started is in the order first, as written; of many some are started in the next look.

    ``most_starts`` 0: nobody may order runs any more. What was started runs to its end, and nothing else is started.
    """
    order = judged.order
    if order.is_over or now - order.created_at > MOST_SECONDS:
        return _wind_up(judged, now)
    if not most_starts:
        return _start_nothing(judged, now)
    actions: list[Action] = []
    parts = list(order.parts)
    for number, part in enumerate(order.parts):
        if len(actions) >= most_starts:
            break
        last = part.last
        if last is not None and last.id in judged.unsent:
            parts[number] = part.with_last(replace(last, at=now))
            actions.append(Start(part=number, target=part.target, try_id=last.id))
        elif _wants_a_try(replace(order, parts=tuple(parts)), part):
            new = Try(id=order.try_id(number), state=TryState.WRITTEN, at=now)
            parts[number] = replace(part, tries=(*part.tries, new))
            actions.append(Start(part=number, target=part.target, try_id=new.id))
    order = replace(order, parts=tuple(parts))
    is_done = all(part.last and not part.last.is_open and not _wants_a_try(order, part) for part in order.parts)
    return Next(order=replace(order, ended_at=now) if is_done else order, actions=tuple(actions))


def _start_nothing(judged: Judged, now: float) -> Next:
    """Follow what was started to its end, and settle the rest: an order that begins to start builds weeks later surprises everybody."""
    order = judged.order
    parts = tuple(
        part if part.last and part.last.id not in judged.unsent else _refused(part, order, number, now, NOBODY_MAY_ORDER)
        for number, part in enumerate(order.parts)
    )
    is_done = not any(part.last and part.last.is_open for part in parts)
    return Next(order=replace(order, parts=parts, ended_at=now if is_done else None))


def _wind_up(judged: Judged, now: float) -> Next:
    """End what still runs or waits; the order has ended once nothing does."""
    order = judged.order
    if not order.is_over:
        why = "nobody follows it any more"
        parts = tuple(
            part.with_last(_ended(replace(part.last, ended_at=None), Verdict.IN_DOUBT, now, why))
            if part.last and part.last.is_open
            else part
            for part in order.parts
        )
        return Next(order=replace(order, ended_at=now, parts=parts))
    why = "it was not started any more"
    parts = tuple(
        part.with_last(_ended(part.last, Verdict.STOPPED, now, why)) if part.last and part.last.id in judged.unsent else part
        for part in order.parts
    )
    is_done = not any(part.last and part.last.is_open for part in parts)
    order = replace(order, parts=parts, ended_at=now if is_done else None)
    return Next(order=order, actions=tuple(_endings(order)))


def _endings(order: RunOrder) -> Iterator[Stop | Cancel]:
    """Stop and cancel what is open. What may have been sent is looked for first."""
    for part in order.parts:
        last = part.last
        if last is None or not last.is_open:
            continue
        if last.state is TryState.RUNNING and last.ended_at is None:
            yield Stop(target=part.target, run=last.run)
        elif last.state is TryState.QUEUED and last.item is not None:
            yield Cancel(target=part.target, item=last.item)


def _wants_a_try(order: RunOrder, part: Part) -> bool:
    """Tell whether a build is to be started for a part: its first one, one for one that was lost, or for a worker that failed."""
    last = part.last
    if last is None:
        return True
    if last.verdict is Verdict.LOST:
        return sum(one.verdict is Verdict.LOST for one in part.tries) <= order.resubmit
    replaced = sum(one.verdict in FAILURES for part in order.parts for one in part.tries[:-1])
    return order.until is not Until.EACH and last.verdict in FAILURES and replaced < order.replace
