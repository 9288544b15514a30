"""People hold a label, for long or again and again, while calls that change labels fail and their answers are lost."""

from functools import partial
from math import inf

from autoscaler.control import operate
from autoscaler.domain.facts.orders import Hold, Resume, Scope
from autoscaler.errors import AutoscalerError
from autoscaler_workbench.fakes.world.faults import Fault
from support.hostile.drawn import MINUTE
from support.hostile.unkind import Draw, Unkindness

SWITCH = "labels-held"


def labels_held(draw: Draw) -> Unkindness:
    """A label is held and released, by the order or by its end."""
    span, life, pool = draw.span(20, 90), draw.life, draw.pool()
    label, is_steady = draw.chance.choice(sorted(pool.labels)), draw.chance.random() < 0.5
    unanswered = draw.chance.choice([0.0, 0.0, 0.3, 0.6])

    def dice(call: str) -> Fault | None:
        return Fault(call, after=draw.chance.random() < 0.5) if call == "jenkins config.xml" and draw.chance.random() < unanswered else None

    def change() -> None:
        if draw.chance.random() < 0.5:
            _hold(draw, label, draw.chance.choice([3, 8, 60]) * MINUTE)
        else:
            _release(draw, label)

    if is_steady:
        draw.at(span[0], partial(_hold, draw, label, None))
    else:
        draw.every((span[0], span[1] - MINUTE), draw.chance.uniform(2, 9) * MINUTE, change)
    draw.every((span[1], inf), 5 * MINUTE, partial(_release, draw, label))  # until the state takes it
    for at in life.jenkins.values():
        draw.while_it_lasts((span[0], span[1] + 10 * MINUTE), at.calls.dice, dice)
    pools = [one for one in life.drawn.fleet.pools.values() if label in one.labels]
    if is_steady and not unanswered:
        life.wanted.held.append((label, *span))
    facts = {
        "touches": lambda build: any(one in pools for one in life.pools_serving(build)),
        "words": {"dora"},
        "comes_and_goes": not is_steady,
    }
    return draw.make(f"{label}{'' if is_steady else ' now and then'}, {unanswered:.0%} unanswered", span, **facts)


def _hold(draw: Draw, label: str, seconds: float | None) -> None:
    fleet = draw.life.fleet
    now = fleet.ports.clock()
    until = None if seconds is None else now + seconds
    order = Hold(scope=Scope.LABEL, name=label, since_at=now, until_at=until, by="dora", reason="the licence server is down")
    draw.bite()
    draw.life.notes.events += [draw.life.world.timeline.now, *([until] if until else [])]
    try:
        operate.hold_for_a_person(fleet.ports_of("operate"), fleet.fleet, fleet.invocation(), order)
    except AutoscalerError:
        return


def _release(draw: Draw, label: str) -> None:
    fleet = draw.life.fleet
    if any(hold.name == label for hold in fleet.state.overrides.holds):
        draw.life.notes.events.append(draw.life.world.timeline.now)
        order = Resume(scope=Scope.LABEL, name=label, nodes=(), reason="it is up")
        try:
            operate.lift(fleet.ports_of("operate"), fleet.fleet, fleet.invocation(), order)
        except AutoscalerError:
            return


SWITCHES = {SWITCH: labels_held}
