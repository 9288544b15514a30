"""Ablations: the production passes with a state store that forgets one part of what was learned."""

from dataclasses import dataclass, field, replace
from typing import Any

from autoscaler.domain.facts.memory import Learned, Memory
from autoscaler.errors import ConfigError
from autoscaler_workbench.fakes.state import InMemoryState

PARTS = ("durations", "boots", "keeping", "growth", "stages", "followers", "schedules")


@dataclass(slots=True)
class AblatedState(InMemoryState):
    """A state that loses one part of what is learned whenever it is saved."""

    part: str = field(kw_only=True)

    def __post_init__(self) -> None:
        """Refuse an unknown part."""
        if self.part not in PARTS:
            raise ConfigError(f"without ({self.part}): must be one of {', '.join(PARTS)}")

    def save_memory(self, memory: Memory) -> None:
        """Save it, without how long agents took to boot, how soon they were needed again, or how bursts grew."""
        if self.part == "boots":
            memory = replace(memory, pools={name: replace(past, boots=()) for name, past in memory.pools.items()})
        if self.part == "keeping":
            memory = _without_needs(memory, returns={})
        if self.part == "growth":
            memory = _without_needs(memory, growths=())
        InMemoryState.save_memory(self, memory)

    def save_learned(self, controller: str, learned: Learned) -> None:
        """Save it, without the part."""
        InMemoryState.save_learned(self, controller, self._without(learned))

    def _without(self, learned: Learned) -> Learned:
        match self.part:
            case "durations":
                return replace(learned, samples={})
            case "stages":
                return replace(learned, stages={})
            case "followers":
                return replace(learned, followers={})
            case "schedules":
                return replace(learned, arrivals={job: replace(seen, expected=()) for job, seen in learned.arrivals.items()})
            case _:
                return learned


def _without_needs(memory: Memory, **nothing: Any) -> Memory:
    """Return the memory without a part of what each controller needed of its pools."""
    controllers = {
        name: replace(past, needs={pool: replace(needs, **nothing) for pool, needs in past.needs.items()})
        for name, past in memory.controllers.items()
    }
    return replace(memory, controllers=controllers)
