"""Warm pools for time-lines."""

from autoscaler.domain.situation.pool_view import STARTS_TO_DOUBT
from support.remembered import tables, with_tables
from support.timeline import Day


def starts_proven(day: Day, pool: str = "cpu", version: str = "1", timed: tuple[float, ...] = (1.0,) * STARTS_TO_DOUBT) -> Day:
    """Let agents of this template version have been seen to start. ``timed``: how long they took; as here, any number may be stopped."""
    held = tables(day.fleet.state.memory)
    given = {"started": {**held.started, pool: version}, "starts": {**held.starts, pool: timed}}
    day.fleet.state.memory = with_tables(day.fleet.state.memory, **given)
    return day
