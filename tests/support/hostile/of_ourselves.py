"""What happens to our own functions: clocks, late ticks, lost or throttled state, and nobody who takes messages."""

from copy import deepcopy
from functools import partial

from autoscaler_workbench.fakes.world.faults import Fault
from support.hostile.drawn import MINUTE
from support.hostile.unkind import Draw, Unkindness

# Seconds; the larger ones are beyond an hour's, a day's and a month's end.
_SKEWS = (-1800.0, -300.0, -60.0, 60.0, 300.0, 1800.0, 2 * 3600.0, 86_400.0, 31 * 86_400.0)


def _all(_thing: object) -> bool:
    return True


def clock_skewed(draw: Draw) -> Unkindness:
    """The functions' clock is ahead or behind: at some passes, or for long."""
    span, skew = draw.span(2, 60), draw.chance.choice(_SKEWS)
    once, fleet = draw.chance.random() < 0.4, draw.life.fleet

    def set_clock(seconds: float) -> None:
        fleet.skew_seconds = seconds
        draw.bite()

    if once:
        draw.every((span[0], span[1] - MINUTE), 10 * MINUTE, partial(set_clock, skew))
        draw.every((span[0] + 1.5 * MINUTE, span[1]), 10 * MINUTE, partial(set_clock, 0.0))
    else:
        draw.at(span[0], partial(set_clock, skew))
    draw.at(span[1], partial(set_clock, 0.0))
    return draw.make(f"{skew:+.0f} s{' now and then' if once else ''}", span, touches=_all, strikes=_all, is_noise=True)


def late_ticks(draw: Draw) -> Unkindness:
    """Ticks come ten minutes apart."""
    span = draw.span(20, 90)
    draw.at(span[0], partial(setattr, draw.life, "tick_minutes", 10))
    draw.at(span[0], draw.bite)
    draw.at(span[1], partial(setattr, draw.life, "tick_minutes", 1))
    return draw.make("10 min", span, touches=_all, strikes=_all, is_noise=True)


def messages_fail(draw: Draw) -> Unkindness:
    """SNS takes no message."""
    span = draw.span(20, 120)
    draw.while_it_lasts(span, draw.life.calls.dice, lambda call: Fault(call) if call == "sns Publish" else None)
    return draw.make("sns", span)


def state_throttled(draw: Draw) -> Unkindness:
    """Calls to the table fail now and then, before they took effect or after."""
    span, share = draw.span(10, 60), draw.chance.choice([0.05, 0.2, 0.5])

    def dice(call: str) -> Fault | None:
        if not call.startswith(("state ", "history ")) or draw.chance.random() >= share:
            return None
        return Fault(call, after=draw.chance.random() < 0.5, status=draw.chance.choice([0, 503]), code="ThrottlingException")

    draw.while_it_lasts(span, draw.life.calls.dice, dice)
    return draw.make(f"{share:.0%}", span, touches=_all, strikes=_all, is_noise=True)


def state_lost(draw: Draw) -> Unkindness:
    """The table is emptied."""
    span, state = draw.span(1, 2), draw.life.fleet.state

    def lose() -> None:
        state.records.clear()
        state.intents.clear()
        state.learned.clear()
        state.memory = type(state.memory)(version=state.memory.version)
        draw.bite()
        state.told = type(state.told)(version=state.told.version)

    draw.at(span[0], lose)
    return draw.make("all of it", span, touches=_all, strikes=_all, is_noise=True)


def state_restored(draw: Draw) -> Unkindness:
    """The state table is restored from a backup. Agents complete their records when they ask again."""
    span, state, kept = draw.span(10, 60), draw.life.fleet.state, {}
    draw.life.fleet.agents.all_ask_on = True

    def keep() -> None:
        kept.update(records=dict(state.records), intents=dict(state.intents), memory=state.memory, learned=deepcopy(state.learned))

    def restore() -> None:
        draw.bite()
        for name, value in kept.items():
            setattr(state, name, value)

    draw.at(span[0], keep)
    draw.at(span[1] - MINUTE / 2, restore)
    return draw.make("as it was", span, touches=_all, strikes=_all, is_noise=True)


SWITCHES = {
    "clock-skewed": clock_skewed,
    "late-ticks": late_ticks,
    "messages-fail": messages_fail,
    "state-throttled": state_throttled,
    "state-lost": state_lost,
    "state-restored": state_restored,
}
