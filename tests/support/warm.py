"""Warm pools for time-lines."""

from dataclasses import replace

from autoscaler.domain.facts.memory import Trial
from autoscaler.domain.situation.trials import of_starts
from support.timeline import Day


def starts_proven(day: Day, pool: str = "cpu", version: str = "1") -> Day:
    """Let an agent of this template version have been seen to start, so that more than one may be stopped."""
    memory, at = day.fleet.state.memory, day.world.timeline.now
    proven = Trial(failures=0, since_at=at, failed_at=at, until_at=at, why="", version=version)
    day.fleet.state.memory = replace(memory, trials={**memory.trials, of_starts(pool): proven})
    return day
