"""Reactive and exact: as many executors as builds are queued or run, looked at each minute; what is idle for ten minutes goes.

Source: the rule that most home-made scalers have; it is buildkite-agent-scaler's without its cool-down.
"""

from dataclasses import dataclass

from autoscaler_workbench.experiment.policy.rival import Rival
from autoscaler_workbench.experiment.policy.rival_fleet import RivalFleet


@dataclass(kw_only=True)
class Reactive(Rival):
    """``desired = ceil((queued + running) / executors)``."""

    idle_seconds: float = 600.0

    NAME = "reactive"
    KNOB = ("idle_seconds", (60, 300, 600, 1800, 3600))
    tick_seconds = 60.0

    def tick(self, fleet: RivalFleet) -> None:
        """Launch what is missing, end what was idle for long enough."""
        for pool in fleet.pools.values():
            desired = pool.agents_for(len(pool.waiting) + pool.running)
            fleet.launch(pool, desired - len(pool.agents))
            fleet.end(agent for agent in pool.idle if agent.idle_seconds(fleet.now) >= self.idle_seconds)
