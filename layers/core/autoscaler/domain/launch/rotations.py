"""Agents of shared pools that stand idle on one controller while jobs wait on another: taken out of use there, to serve here."""

from dataclasses import dataclass, field

from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.plan import Cordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.rotation import spare_elsewhere
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.steps import Decided, cordon, leaving


@dataclass(slots=True)
class Rotations:
    """The agents that one controller takes from others in this pass. ``decided``: what the pass does already."""

    situation: Situation
    controller: str
    decided: Decided = ()
    steps: list[Cordon] = field(default_factory=list)
    _spare: dict[str, list[Agent]] = field(default_factory=dict)

    def take(self, pool: PoolView, job: str) -> bool:
        """Take one idle agent of this pool from another controller; False where there is none to be had, or it would be marked here."""
        if pool.doubt is not None:
            return False
        if pool.name not in self._spare:
            found = spare_elsewhere(self.situation, pool)
            self._spare[pool.name] = [agent for agent in found if not self._is_taken(agent)]
        if not (spare := self._spare[pool.name]):
            return False
        agent = spare.pop(0)
        detail = f"it is idle, and {job or 'a job'} waits on {self.controller}"
        self.steps.append(cordon(self.situation, agent, MarkClass.ROTATE, Reason.ROTATES, detail))
        return True

    def _is_taken(self, agent: Agent) -> bool:
        return agent.record.node in leaving(self.decided, agent.record.controller)
