"""What is done next for an order: builds that are started, stopped and cancelled, and when it has ended."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from autoscaler.domain.facts.started_builds import FAILURES, Part, RunOrder, Target, Try, TryState, Until, Verdict
from autoscaler.domain.run_orders.judging import Judged

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
    is_done = all(_is_done(order, part) for part in order.parts)
    return Next(order=replace(order, ended_at=now) if is_done else order, actions=tuple(actions))


def _start_nothing(judged: Judged, now: float) -> Next:
    """Follow what was started to its end, and settle the rest: an order that begins to start builds weeks later surprises everybody."""
    order = judged.order
    parts = tuple(_not_started(order, number, judged, now) for number in range(len(order.parts)))
    is_done = not any(part.last and part.last.is_open for part in parts)
    return Next(order=replace(order, parts=parts, ended_at=now if is_done else None))


def _not_started(order: RunOrder, number: int, judged: Judged, now: float) -> Part:
    part = order.parts[number]
    last = part.last or Try(id=order.try_id(number), state=TryState.WRITTEN, at=now)
    if part.last is not None and last.id not in judged.unsent:
        return part
    refused = replace(last, state=TryState.ENDED, verdict=Verdict.REFUSED, ended_at=now, why=NOBODY_MAY_ORDER)
    return part.with_last(refused)


def _wind_up(judged: Judged, now: float) -> Next:
    """End what still runs or waits; the order has ended once nothing does."""
    order = judged.order
    if not order.is_over:
        return Next(order=replace(order, ended_at=now, parts=tuple(_given_up(part, now) for part in order.parts)))
    parts = tuple(_never_sent(part, judged, now) for part in order.parts)
    order = replace(order, parts=parts)
    if not any(part.last and part.last.is_open for part in parts):
        return Next(order=replace(order, ended_at=now))
    return Next(order=order, actions=tuple(_endings(order)))


def _given_up(part: Part, now: float) -> Part:
    last = part.last
    if last is None or not last.is_open:
        return part
    return part.with_last(replace(last, state=TryState.ENDED, verdict=Verdict.IN_DOUBT, ended_at=now, why="nobody follows it any more"))


def _never_sent(part: Part, judged: Judged, now: float) -> Part:
    last = part.last
    if last is None or last.id not in judged.unsent:
        return part
    return part.with_last(replace(last, state=TryState.ENDED, verdict=Verdict.STOPPED, ended_at=now, why="it was not started any more"))


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
    return order.until is not Until.EACH and last.verdict in FAILURES and _replaced(order) < order.replace


def _replaced(order: RunOrder) -> int:
    """Count the failing workers that were replaced."""
    return sum(one.verdict in FAILURES for part in order.parts for one in part.tries[:-1])


def _is_done(order: RunOrder, part: Part) -> bool:
    return part.last is not None and not part.last.is_open and not _wants_a_try(order, part)
