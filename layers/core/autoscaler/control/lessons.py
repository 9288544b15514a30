"""Saves the memory of a pass, with what its steps have taught. Refusals of EC2 are saved at once: a pass may be cut off after them."""

from dataclasses import replace

from autoscaler.control.report import Outcome, Result
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.memory import Memory
from autoscaler.domain.facts.plan import Launch, Plan, Start, Stop, Terminate
from autoscaler.domain.learn import Outcomes, note_results
from autoscaler.errors import AutoscalerError
from autoscaler.ports import Ports

# Each save writes the whole memory. If EC2 refuses everything, the others are saved when the pass ends.
_MOST_EARLY_SAVES = 5
_ASKED_OF_EC2 = (Launch, Start, Stop, Terminate)


class Lessons:
    """What the steps of one pass have taught so far."""

    def __init__(self, ports: Ports, fleet: Fleet, plan: Plan) -> None:
        """Begin with the memory of the plan."""
        self._ports = ports
        self._fleet = fleet
        self._plan = plan
        self._version = plan.memory.version
        self._refusals = 0
        self._early_saves = 0
        self._saved: Memory | None = None

    def note(self, result: Result, outcomes: Outcomes, *, is_last: bool) -> None:
        """Save what EC2 has refused in a step. After the last one the pass saves everything anyway."""
        refusals = len(outcomes.refused) + len(outcomes.refused_canaries)
        has_failed = result.outcome is Outcome.FAILED and isinstance(result.step, _ASKED_OF_EC2)
        is_new, self._refusals = has_failed or refusals > self._refusals, refusals
        if is_new and not is_last and self._early_saves < _MOST_EARLY_SAVES:
            self._early_saves += 1
            self._save(self._learned(outcomes))

    def save(self, outcomes: Outcomes) -> bool:
        """Save what is to be remembered of the whole pass; tell whether the memory of the plan is saved."""
        memory = self._learned(outcomes)
        if self._saved is not None and memory == self._saved:
            return True
        if not (self._plan.remember or memory != self._plan.memory):
            return False
        return self._save(memory)

    def _learned(self, outcomes: Outcomes) -> Memory:
        return note_results(self._plan.memory, self._fleet, outcomes, self._ports.clock())

    def _save(self, memory: Memory) -> bool:
        try:
            self._ports.state.save_memory(replace(memory, version=self._version))
        except AutoscalerError as error:
            # Forgetting costs a window or a second look, and what was done is done: the report must still go out.
            self._ports.log("memory_not_saved", error=f"{type(error).__name__}: {error}")
            return False
        self._saved = memory
        self._version += 1
        return True
