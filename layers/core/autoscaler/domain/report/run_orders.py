"""What has become of the runs that people ordered: which passed where, how long each took, and what sets apart those that did not."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from autoscaler.domain.facts.started_builds import FAILURES, Part, RunOrder, Try, TryState, Until, Verdict
from autoscaler.domain.wording import duration


class Outcome(StrEnum):
    """How an order ended."""

    PASSED = "passed"
    FAILED = "failed"  # at least one build did not pass
    UNFINISHED = "unfinished"  # at least one was lost too often, refused, or is in doubt
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartEntry:
    """One of the runs. ``state``: of its last try, as people say it; ``tries``: how many were started; spans in seconds."""

    number: int
    controller: str
    pool: str
    value: str
    label: str
    state: str
    run: str
    node: str
    tries: int
    waited_seconds: float | None
    took_seconds: float | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEntry:
    """One order. ``outcome``: None while it is open; ``summary``: one sentence; ``ranking``: why these places were chosen."""

    id: str
    job: str
    parameters: dict[str, str]
    by: str
    reason: str
    created_at: float
    ended_at: float | None
    until: Until
    vary: str
    outcome: Outcome | None
    summary: str
    parts: tuple[PartEntry, ...]
    ranking: tuple[str, ...]


def entry_of(order: RunOrder, now: float) -> RunEntry:
    """Tell of one order."""
    return RunEntry(
        id=order.id,
        job=order.job,
        parameters=dict(order.parameters),
        by=order.by,
        reason=order.reason,
        created_at=order.created_at,
        ended_at=order.ended_at,
        until=order.until,
        vary=order.vary,
        outcome=outcome_of(order),
        summary=summary_of(order),
        parts=tuple(_part(number, part, now) for number, part in enumerate(order.parts, 1)),
        ranking=order.ranking,
    )


def outcome_of(order: RunOrder) -> Outcome | None:
    """Say how an order ended; None while it is open."""
    if order.is_open:
        return None
    verdicts = [part.verdict for part in order.parts]
    if order.until is Until.FIRST_SUCCESS and any(one.verdict is Verdict.PASSED for one in order.all_tries()):
        return Outcome.PASSED
    if order.cancelled_by:
        return Outcome.CANCELLED
    if all(verdict is Verdict.PASSED for verdict in verdicts):
        return Outcome.PASSED
    return Outcome.FAILED if FAILURES & set(verdicts) else Outcome.UNFINISHED


def summary_of(order: RunOrder) -> str:
    """Say in a sentence how far an order is, or how it ended: ``2 of 3 failed, both on gfx1030``."""
    if order.is_open:
        return _how_far(order)
    winner = next((part for part in order.parts if part.verdict is Verdict.PASSED), None)
    if order.until is Until.FIRST_SUCCESS and winner:
        return f"passed first on {_place(winner)}"
    if order.cancelled_by:
        return f"cancelled by {order.cancelled_by}"
    return _results(order)


def _how_far(order: RunOrder) -> str:
    counts = Counter(_state(part) for part in order.parts)
    told = ", ".join(f"{count} {state}" for state, count in counts.items())
    return f"{told}; its end was ordered by {order.cancelled_by}" if order.cancelled_by else told


def _results(order: RunOrder) -> str:
    failed = [part for part in order.parts if part.verdict is not Verdict.PASSED]
    if not failed:
        return f"{len(order.parts)} of {len(order.parts)} passed"
    words = sorted({str(part.verdict or "not started") for part in failed}, key=lambda word: (word != Verdict.FAILED, word))
    return f"{len(failed)} of {len(order.parts)} {' or '.join(words)}{_set_apart(order.parts, failed)}"


def _set_apart(parts: Iterable[Part], failed: list[Part]) -> str:
    """Say what those that failed have in common, and none that passed has."""
    passed = [part for part in parts if part.verdict is Verdict.PASSED]
    how_many = {1: "", 2: "both "}.get(len(failed), "all ")
    for fact in (_value, _pool, _controller, _node):
        theirs, others = {fact(part) for part in failed}, {fact(part) for part in passed}
        if passed and len(theirs) == 1 and "" not in theirs and not theirs & others:
            return f", {how_many}on {theirs.pop()}"
    return ""


def _value(part: Part) -> str:
    return part.target.value


def _pool(part: Part) -> str:
    return part.target.pool


def _controller(part: Part) -> str:
    return part.target.controller


def _node(part: Part) -> str:
    return part.last.node if part.last else ""


def _place(part: Part) -> str:
    return part.target.value or part.target.pool


def _part(number: int, part: Part, now: float) -> PartEntry:
    last = part.last
    return PartEntry(
        number=number,
        controller=part.target.controller,
        pool=part.target.pool,
        value=part.target.value,
        label=part.target.label,
        state=_state(part),
        run=last.run if last else "",
        node=last.node if last else "",
        tries=len(part.tries),
        waited_seconds=_waited(last, now),
        took_seconds=_took(last, now),
        why=_why(part),
    )


def _state(part: Part) -> str:
    last = part.last
    if last is None:
        return "to be started"
    return {TryState.WRITTEN: "being started", TryState.QUEUED: "waits", TryState.RUNNING: "runs"}.get(last.state) or str(
        last.verdict or "ended"
    )


def _waited(last: Try | None, now: float) -> float | None:
    if last is None:
        return None
    until = last.began_at if last.began_at is not None else (last.ended_at or now)
    return max(0.0, until - last.at)


def _took(last: Try | None, now: float) -> float | None:
    if last is None or last.began_at is None:
        return None
    return max(0.0, (last.ended_at or now) - last.began_at) if last.took_seconds is None else last.took_seconds


def _why(part: Part) -> str:
    """Say why it ended so, and what was started before it."""
    before = [f"{one.run or one.id} {one.verdict}" for one in part.tries[:-1]]
    own = part.last.why if part.last else ""
    return "; ".join(filter(None, (own, f"before it: {', '.join(before)}" if before else "")))


def told(entry: RunEntry, now: float) -> str:
    """Say of an order in a line what it is and how far."""
    return f"{entry.id}: {entry.job}, ordered by {entry.by} {duration(now - entry.created_at)} ago: {entry.summary}"
