"""Makes looks by hand: what is seen, minute after minute, and nothing becomes of the steps."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.snapshot import Snapshot
from corpus.case import Asks, Look
from corpus.harvest import without_memory
from corpus.outcomes import Outcomes
from support.builders import NOW, a_snapshot, a_view, with_beacons

MINUTE, HOUR = 60.0, 3600.0
_NOTHING = Outcomes()


def look(asks: Asks, fleet: Fleet, seen: Snapshot, at: float, **more: Any) -> Look:
    """A look at an instant, carried out; nothing becomes of its steps."""
    facts = replace(
        without_memory(with_beacons(seen, fleet)),
        taken_at=at,
        pass_id=f"p{at:.0f}",
        request_id=f"r{at:.0f}",
    )
    carried_out = {} if asks is Asks.LEARN else {"outcomes": _NOTHING, "over_at": at}
    return Look(asks=asks, facts=facts, fleet=fleet, **(carried_out | more))


def minutes(
    fleet: Fleet, seen: Snapshot, minutes: int, *, first: int = 0, every: int = 1
) -> Iterator[Look]:
    """An idle minute: `scale_up`, then `scale_down`."""
    for minute in range(first, first + minutes, every):
        at = NOW + minute * MINUTE
        yield look(Asks.UP, fleet, seen, at)
        yield look(Asks.DOWN, fleet, seen, at + 1.0)


def long_known(fleet: Fleet) -> Iterator[Look]:
    """Two looks at controllers without agents, so that none is known only since this minute."""
    views = [a_view(name=name) for name in fleet.controllers]
    yield from minutes(fleet, a_snapshot(*views), 4, first=-64, every=2)
