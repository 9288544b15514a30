"""What two ways of running the functions have in common: the hours that both played, step by step."""

from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from typing import Any

from autoscaler_workbench.simulate.recording import StepTaken
from autoscaler_workbench.simulate.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """A run after so many passes: its measures, and each step that was taken."""

    passes: int
    seconds: float
    measures: dict[str, Any]
    steps: tuple[StepTaken, ...]

    def told(self) -> dict[str, Any]:
        """As one JSON object."""
        return {"passes": self.passes, "hours": round(self.seconds / 3600, 2), "steps": len(self.steps)} | self.measures


def shared_of(run: Run, passes: int) -> Shared:
    """Take down a run as it is now."""
    measured = run.result_now()
    return Shared(
        passes=passes,
        seconds=run.world.timeline.now - run.trace.start_at,
        measures={name: measured[name] for name in ("jobs", "finished", "killed", "usd", "wait_hours", "launches", "terminations")},
        steps=tuple(sorted(run.recording.taken, key=astuple)),  # the steps of one pass have no order that matters
    )


def difference(one: Shared, other: Shared) -> str:
    """Name the first thing in which they differ; empty where they are the same."""
    for here, there in zip(one.steps, other.steps, strict=False):
        if here != there:
            return f"at {datetime.fromtimestamp(here.at, UTC):%H:%M} {_words(here)}, not {_words(there)}"
    if len(one.steps) != len(other.steps):
        return f"{len(one.steps)} steps, not {len(other.steps)}"
    return next((f"{name} {one.measures[name]}, not {value}" for name, value in other.measures.items() if one.measures[name] != value), "")


def _words(step: StepTaken) -> str:
    return f"{step.step} {step.node or f'{step.count} {step.pool}'} ({step.reason})"
