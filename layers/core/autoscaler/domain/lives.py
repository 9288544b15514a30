"""The lives of a controller: a restart makes busy agents look idle and offline, so what it shows is doubted for a while."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from autoscaler.domain.memory import Life
from autoscaler.domain.numbers import RESTART_GRACE_SECONDS
from autoscaler.domain.snapshot import ControllerView


def next_life(life: Life | None, view: ControllerView, pinned: frozenset[str], now: float) -> Life | None:
    """Carry a controller's life on by what this pass saw of it; an incomplete view changes nothing."""
    if not view.complete:
        return life
    nodes = {node.name: node for node in view.nodes if node.agent}
    busy = tuple(sorted(name for name, node in nodes.items() if not node.idle))
    if life is None:
        # Met for the first time, or the state was lost: what is marked offline may have been busy before a restart that we did not see.
        marked = tuple(sorted(name for name, node in nodes.items() if node.temporarily_offline))
        return Life(session=view.session, since_at=now, busy=busy, suspects=marked)
    if life.session != view.session:
        doubted = tuple(sorted({*life.suspects, *life.busy} & nodes.keys()))
        return Life(session=view.session, since_at=now, restarted=True, busy=busy, suspects=doubted)
    connected = {name for name in life.suspects if name in nodes and not nodes[name].offline}
    at_work = connected & set(busy)
    rested = {name for name in connected - at_work if name not in pinned}
    if not in_grace(life, now):
        # What is offline, by a mark or because its agent is away, cannot be seen at work. But a pipeline that was on it would by now
        # have been waiting for it by name for as long as it is offline.
        rested |= {name for name in life.suspects if name in nodes and nodes[name].offline and nodes[name].idle} - pinned
    cleared = at_work | (rested & set(life.cleared_once)) | (set(life.suspects) - nodes.keys())
    return replace(
        life,
        busy=busy,
        suspects=tuple(name for name in life.suspects if name not in cleared),
        cleared_once=tuple(sorted(rested - cleared)),
    )


def next_lives(
    lives: Mapping[str, Life], views: Iterable[ControllerView], pins: Mapping[str, frozenset[str]], now: float
) -> dict[str, Life]:
    """Carry every controller's life on."""
    carried = dict(lives)
    for view in views:
        life = next_life(lives.get(view.name), view, pins[view.name], now)
        if life is not None:
            carried[view.name] = life
    return carried


def in_grace(life: Life | None, now: float) -> bool:
    """Tell whether nothing destructive may follow from what this controller shows: it is new to us, or restarted lately."""
    return life is None or now - life.since_at < RESTART_GRACE_SECONDS


def is_recovering(life: Life | None, now: float) -> bool:
    """Tell whether it restarted so lately that its agents are still coming back and are not to be replaced."""
    return life is not None and life.restarted and in_grace(life, now)
