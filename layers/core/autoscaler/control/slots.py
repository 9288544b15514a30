"""Looks between the ticks: the minute's invocation asks to be woken at each slot, and who is woken first takes it."""

from collections.abc import Iterator
from functools import partial
from math import ceil

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.snapshot import MINUTE_SECONDS
from autoscaler.errors import ConfigError
from autoscaler.ports import Ports

# The next slot is on its way by then: whoever is woken so late leaves the look to it.
STALE_SLOT_SECONDS = 8.0
# However often controllers tell of their queues.
ASKED_EVERY_SECONDS = 5.0
SEEN_AFTER_SECONDS = 1.0  # Jenkins tells a little before its queue shows it


def announce_looks(ports: Ports, tick_at: float) -> None:
    """Ask to be woken at the slots that are left of a tick's minute. Where that fails, this minute has one look, as any other would."""
    if ports.slots is None:
        return
    now = ports.clock()  # a tick of a day that is still to come asks for nothing then
    slots = {f"slot#{at:.0f}": at for at in slots_of(tick_at, ports.look_every_seconds) if now < at <= now + MINUTE_SECONDS}
    ports.or_else(partial(ports.slots.announce, slots, now), "looks_not_announced", otherwise=None, slots=len(slots))


def slots_of(tick_at: float, every: float) -> Iterator[float]:
    """Yield the times at which the minute of a tick is looked at once more."""
    return (tick_at + number * every for number in range(1, ceil(MINUTE_SECONDS / every)))


def ask_for_look(ports: Ports, fleet: Fleet) -> None:
    """Have a look taken once what is queued now may count as demand, unless one that will see it has been asked for.

    Of some seconds the first who asks has a look of its own, and all others share one after the last of them.
    """
    now = ports.clock()
    number = int(now // ASKED_EVERY_SECONDS)
    if ports.slots is None:
        raise ConfigError("a look was asked for, and there is no queue that could wake scale_up")
    for asks, look, asked_at in (("ask", "hook", now), ("askmore", "hookmore", (number + 1) * ASKED_EVERY_SECONDS)):
        if ports.slots.take(f"{asks}#{number}", now):
            soonest = min(pool.queue_maturity_seconds for pool in fleet.pools.values())
            ports.slots.announce({f"{look}#{number}": asked_at + min(soonest, MINUTE_SECONDS) + SEEN_AFTER_SECONDS}, now)
            return


def why_skipped(ports: Ports, slot: str, at: float) -> str:
    """Take a slot; "" where it is ours now, else why nothing is done: a queue wakes late, and twice."""
    if ports.clock() - at > STALE_SLOT_SECONDS:
        return "stale-slot"
    if ports.slots is None:
        return "no-slots"
    return "" if ports.slots.take(slot, ports.clock()) else "slot-taken"
