"""Instances that EC2 does not show. That proves nothing for hours: lists lag, come back empty, or are of another account.

EC2 tells of an instance for an hour after its end. So one that it does not know any more is taken for gone only two hours
after it was last seen, when EC2 has twice been asked for it alone, ten minutes apart, and when its node is neither
connected nor, within a day, busy. Where EC2 and Jenkins disagree about many agents at once, something is wrong with what we see.
"""

from collections.abc import Collection, Iterable, Mapping
from math import ceil

from autoscaler.domain.agents import Agent
from autoscaler.domain.memory import Missing
from autoscaler.domain.numbers import (
    FORGOTTEN_AFTER_SECONDS,
    FORGOTTEN_ASK_AGAIN_SECONDS,
    FORGOTTEN_BUSY_AFTER_SECONDS,
    SWEEP_AT_LEAST,
    SWEEP_SHARE,
)
from autoscaler.domain.snapshot import InstanceState, Snapshot

_NOT_ALIVE = (InstanceState.NOT_FOUND, InstanceState.TERMINATED)


def next_missing(known: Mapping[str, Missing], snapshot: Snapshot) -> dict[str, Missing]:
    """Carry on since when each instance is missing; one that EC2 shows again is not."""
    return {
        instance_id: _next(known.get(instance_id), snapshot.taken_at, alone=instance_id in snapshot.unknown_alone)
        for instance_id, state in snapshot.fates.items()
        if state is InstanceState.NOT_FOUND
    }


def ids_to_ask_alone(known: Mapping[str, Missing], fates: Mapping[str, InstanceState], now: float) -> list[str]:
    """Name the instances that have been missing for so long that EC2 is asked for each of them alone."""
    missing = (instance_id for instance_id, state in fates.items() if state is InstanceState.NOT_FOUND)
    return sorted(i for i in missing if i in known and now - known[i].since_at >= FORGOTTEN_AFTER_SECONDS)


def forgotten(missing: Mapping[str, Missing], snapshot: Snapshot) -> frozenset[str]:
    """Name the instances that EC2 has forgotten, as far as EC2 alone can prove it."""
    now = snapshot.taken_at
    return frozenset(
        instance_id
        for instance_id in snapshot.unknown_alone
        if (known := missing.get(instance_id))
        and now - known.since_at >= FORGOTTEN_AFTER_SECONDS
        and known.asked_at is not None
        and now - known.asked_at >= FORGOTTEN_ASK_AGAIN_SECONDS
    )


def forgotten_for_a_day(missing: Mapping[str, Missing], gone: Collection[str], now: float) -> frozenset[str]:
    """Of what EC2 has forgotten, name what it has not shown for so long that a build on its node waits in vain."""
    return frozenset(instance_id for instance_id in gone if now - missing[instance_id].since_at >= FORGOTTEN_BUSY_AFTER_SECONDS)


def disagreement(agents: Iterable[Agent], snapshot: Snapshot) -> str | None:
    """Say of how many connected agents EC2 shows no living instance, where those are too many to be believed; None where they are not."""
    connected = [agent for agent in agents if agent.node is not None and not agent.node.offline]
    gone = sum(snapshot.states.get(agent.record.instance_id) in _NOT_ALIVE for agent in connected)
    if gone <= max(SWEEP_AT_LEAST, ceil(SWEEP_SHARE * len(connected))):
        return None
    return f"EC2 shows no living instance of {gone} of {len(connected)} connected agents: nothing is given up until they agree"


def _next(known: Missing | None, now: float, *, alone: bool) -> Missing:
    if known is None:
        return Missing(since_at=now)
    # An answer in between that showed it would have ended this; one that did not come leaves it as it is.
    return Missing(since_at=known.since_at, asked_at=known.asked_at if known.asked_at is not None else now if alone else None)
