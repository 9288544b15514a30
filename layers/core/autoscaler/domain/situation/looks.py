"""Looks: seconds in which nobody could see count against nobody.

A deadline counts the seconds between whole looks. A look at a controller is whole if it was read completely and takes builds; if it
answers 401 to everybody, times out, shows a login page, restarts or is in quiet mode, its clock stands still. EC2 has a clock of its
own, which stands still while no pass is completed.

Of a gap that is too long one minute counts, that of the look before it. So a controller that is seen only now and then still reaches
each deadline, later.
"""

from collections.abc import Mapping

from autoscaler.domain.facts.memory import Looks
from autoscaler.domain.facts.snapshot import LOOK_GAP_SECONDS, MINUTE_SECONDS, ControllerView, Snapshot

# The name under which looks at EC2 are kept; no controller has it.
EC2 = ""
# No deadline is longer than some days; of what was before, older spans say nothing.
SPANS_KEPT_SECONDS = 7 * 86_400.0
# A controller that is seen now and then leaves a span in every four minutes: the oldest are put together.
SPANS_KEPT = 40
Span = tuple[float, float]


def next_looks(known: Mapping[str, Looks], snapshot: Snapshot) -> dict[str, Looks]:
    """Carry on when EC2 and each controller were last seen as a whole, and the spans in which they were not."""
    whole = {EC2: True, **{view.name: is_whole(view) for view in snapshot.controllers.values()}}
    return {name: _next(known.get(name), snapshot.taken_at, is_whole=is_whole) for name, is_whole in whole.items()}


def is_gap(looks: Mapping[str, Looks], now: float) -> bool:
    """Tell whether nobody has looked at EC2 for a while, as far as is remembered, or the clock has gone back."""
    ec2 = looks.get(EC2)
    return ec2 is None or abs(now - ec2.at) > LOOK_GAP_SECONDS


def is_whole(view: ControllerView) -> bool:
    """Tell whether a look proves what agents and builds could do. In quiet mode nothing begins, and pipelines stand still."""
    return view.complete and not view.quieting_down


def blind_seconds(looks: Looks | None, since_at: float, now: float) -> float:
    """Count the seconds since then in which nobody could see."""
    if looks is None or (not looks.blind and looks.at + MINUTE_SECONDS >= now):
        return 0.0
    spans = (*looks.blind, (looks.at + MINUTE_SECONDS, now))
    return sum(max(0.0, min(to_at, now) - max(from_at, since_at)) for from_at, to_at in spans)


def _next(looks: Looks | None, now: float, *, is_whole: bool) -> Looks:
    if looks is None:
        return Looks(at=now)
    # A span that ends later than now was seen by a wrong clock, and never was.
    blind = tuple(span for span in looks.blind if now - SPANS_KEPT_SECONDS < span[1] <= now)
    if not is_whole:
        return Looks(at=min(looks.at, now), blind=blind)
    if now - looks.at > LOOK_GAP_SECONDS:
        blind = _bounded((*blind, (looks.at + MINUTE_SECONDS, now)))
    return Looks(at=now, blind=blind)


def _bounded(spans: tuple[Span, ...]) -> tuple[Span, ...]:
    """Put the two oldest together if there are too many; together they last as long as before."""
    if len(spans) <= SPANS_KEPT:
        return spans
    (from_at, to_at), (next_from_at, next_to_at), *rest = spans
    return (next_from_at - (to_at - from_at), next_to_at), *rest
