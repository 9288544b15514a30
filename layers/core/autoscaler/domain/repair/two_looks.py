"""Two looks make a fact: conditions seen on agents, and since when without a gap."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from autoscaler.domain.facts.memory import Observation
from autoscaler.domain.facts.snapshot import LOOK_GAP_SECONDS

# A WebSocket agent is back within seconds of a lost connection; a rebooting one within a few minutes.
DISCONNECT_GRACE_SECONDS = 300.0
# Repairs act on what two invocations saw, this far apart: DescribeInstances lags by up to 30 s.
SECOND_LOOK_SECONDS = 60.0


class Condition(StrEnum):
    """A condition of an agent, an instance or a node that may have to be removed."""

    IDLE = "idle"  # ready, connected and idle
    UNLABELLED = "unlabelled"  # its labels were taken, and idle
    DRAINED = "drained"  # carries our mark, and idle
    OVERDUE = "overdue"  # not registered by its boot deadline
    NODELESS = "nodeless"  # registered, and its node is not there
    LOST = "lost"  # disconnected
    STOPPED = "stopped"  # its instance was stopped, and not by us
    STARTED = "started"  # its instance runs, and was not started by us
    ENDED = "ended"  # its instance is gone, its node is not
    STRAY = "stray"  # an instance of ours without a record
    ORPHAN = "orphan"  # a node of ours without a record, whose instance is gone


@dataclass(frozen=True, slots=True)
class Seen:
    """A condition that this pass sees on one subject; ``session``: the controller's, "" where Jenkins is no witness."""

    condition: Condition
    session: str = ""


def next_observations(
    looks: Mapping[str, Observation], seen: Mapping[str, Seen], now: float, request_id: str, unread: Collection[str] = ()
) -> dict[str, Observation]:
    """Carry observations on; a condition not seen this time, or in another session, starts again.

    ``unread``: subjects whose controller could not be read. A look that did not come ends nothing, unless the gap gets too long.
    """
    waiting = {subject: looks[subject] for subject in unread if subject in looks and looks[subject].last_at >= now - LOOK_GAP_SECONDS}
    return waiting | {subject: _next(looks.get(subject), now_seen, now, request_id) for subject, now_seen in seen.items()}


def is_settled(look: Observation, settle_seconds: float, now: float, request_id: str) -> bool:
    """Tell whether a drained agent may be terminated: idle when cordoned and after, or drained in two invocations."""
    if look.condition != Condition.DRAINED:
        return False
    if look.idle_before_at is not None and now - look.idle_before_at >= settle_seconds:
        return True
    return is_fact(look, now, request_id)


def is_unlabelled_twice(look: Observation, settle_seconds: float, now: float) -> bool:
    """Tell whether an agent without labels was idle in two looks since: builds handed to it before show by then."""
    return look.condition == Condition.UNLABELLED and now - look.first_at >= settle_seconds


def is_fact(look: Observation, now: float, request_id: str) -> bool:
    """Tell whether a condition is seen now and was seen in another invocation, long enough ago."""
    return look.last_at == now and look.request_id != request_id and now - look.first_at >= SECOND_LOOK_SECONDS


def _next(look: Observation | None, seen: Seen, now: float, request_id: str) -> Observation:
    idle_before_at: float | None = None
    if look is not None and look.session == seen.session and now - look.last_at <= LOOK_GAP_SECONDS:
        if look.condition == seen.condition:
            return replace(look, last_at=now)
        if look.condition in {Condition.IDLE, Condition.UNLABELLED} and seen.condition is Condition.DRAINED:
            idle_before_at = look.last_at
    return Observation(
        condition=seen.condition,
        first_at=now,
        last_at=now,
        request_id=request_id,
        session=seen.session,
        idle_before_at=idle_before_at,
    )
