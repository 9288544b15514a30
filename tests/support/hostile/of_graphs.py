"""Flow graphs of pipelines that cannot be read, are cut off, are huge, or belong to runs that were deleted: no build waits for them."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from autoscaler.domain.facts.runs import RunGraph
from autoscaler.errors import NoAnswerError, TransientError
from support.hostile.unkind import Draw, Unkindness

_AWAY, _REFUSED, _DELETED, _CUT, _HUGE, _WITHOUT, _NUMBERED_ANEW = "away", "refused", "deleted", "cut", "huge", "without", "numbered anew"
_KINDS = (_AWAY, _REFUSED, _DELETED, _CUT, _HUGE, _WITHOUT, _NUMBERED_ANEW)
_Read = Callable[[str, int], RunGraph | None]


def graphs_unread(draw: Draw) -> Unkindness:
    """Several of these at once, each for some of the runs, on each controller."""
    span, share = draw.span(30, 240, for_ever=0.4), draw.chance.choice([0.2, 0.6, 1.0])
    kinds = draw.chance.sample(_KINDS, draw.chance.choice([1, 2, 3]))
    timeline = draw.life.world.timeline

    def unkind(run: str, most_steps: int, read: _Read) -> RunGraph | None:
        drawn = Random(f"{draw.life.drawn.seed}/{run}")
        if not span[0] <= timeline.now <= span[1] or drawn.random() >= share:
            return read(run, most_steps)
        draw.bite()
        return _answered(drawn.choice(kinds), run, most_steps, read)

    for controller in draw.life.fleet.ports.controllers:
        read: _Read = controller.graph
        controller.graph = lambda run, most_steps, read=read: unkind(run, most_steps, read)  # type: ignore[method-assign]
    return draw.make(", ".join(kinds), span)


def _answered(kind: str, run: str, most_steps: int, read: _Read) -> RunGraph | None:
    """Answer for one run in one of these ways."""
    if kind == _AWAY:
        raise NoAnswerError(f"{run} timed out")
    if kind == _REFUSED:
        raise TransientError(f"{run} answered 500")
    if kind == _DELETED:
        return None
    graph = read(run, min(most_steps, 3) if kind == _CUT else most_steps)
    if graph is None:
        return None
    if kind == _HUGE:
        return replace(graph, cut=True, size=200 * most_steps)
    if kind == _WITHOUT:
        return replace(graph, blocks=(), shows_steps=False)
    return replace(graph, last=1) if kind == _NUMBERED_ANEW else graph


SWITCHES = {"graphs-unread": graphs_unread}
