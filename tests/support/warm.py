"""Warm pools for time-lines."""

from autoscaler.domain.facts.memory import Trial
from autoscaler.domain.situation.breakers import TrialOf
from autoscaler.domain.situation.pool_view import STARTS_TO_DOUBT
from support.remembered import tables, with_tables
from support.timeline import Day


def starts_proven(day: Day, pool: str = "cpu", version: str = "1", timed: tuple[float, ...] = (1.0,) * STARTS_TO_DOUBT) -> Day:
    """Let agents of this template version have been seen to start. ``timed``: how long they took; as here, any number may be stopped."""
    memory, at = day.fleet.state.memory, day.world.timeline.now
    proven = Trial(failures=0, since_at=at, failed_at=at, until_at=at, why="", version=version)
    trials = {**memory.trials, TrialOf.START.scope(pool): proven}
    day.fleet.state.memory = with_tables(memory, trials=trials, starts={**tables(memory).starts, pool: timed})
    return day
