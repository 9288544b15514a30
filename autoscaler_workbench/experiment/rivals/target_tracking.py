"""An Auto Scaling group with target tracking on the backlog per instance.

Source: Amazon EC2 Auto Scaling user guide, "Scaling policy based on Amazon SQS" and "Target tracking"; the 3 and 15 points and the
ratio of the low alarm are the alarms that AWS makes, not a contract. Kept: three minutes above the target before anything is launched,
fifteen below it before anything is ended, instances in their 300 s warm-up left out of the metric, no scale-in meanwhile. Without
scale-in protection the group ends whom it likes: a build may be killed.
"""

from dataclasses import dataclass, field
from math import ceil

from autoscaler_workbench.experiment.policy.rival import Rival
from autoscaler_workbench.experiment.policy.rival_fleet import RivalFleet, RivalPool

_HIGH_POINTS, _LOW_POINTS, _LOW_RATIO = 3, 15, 0.9
_WARM_UP_SECONDS = 300.0


@dataclass(kw_only=True)
class TargetTracking(Rival):
    """``backlog``: queued jobs per instance that are found acceptable."""

    backlog: float = 1.0
    _high: dict[str, int] = field(default_factory=dict)
    _low: dict[str, int] = field(default_factory=dict)

    NAME = "target-tracking"
    KNOB = ("backlog", (0.1, 0.25, 0.5, 1.0, 2.0))
    tick_seconds = 60.0

    def tick(self, fleet: RivalFleet) -> None:
        """Publish one point for each pool, and follow its alarms."""
        for name, pool in fleet.pools.items():
            self._follow(fleet, name, pool)

    def _follow(self, fleet: RivalFleet, name: str, pool: RivalPool) -> None:
        warm = [agent for agent in pool.agents.values() if fleet.now - agent.since >= _WARM_UP_SECONDS]
        metric = len(pool.waiting) / max(1, len(warm))
        self._high[name] = self._high.get(name, 0) + 1 if metric > self.backlog else 0
        self._low[name] = self._low.get(name, 0) + 1 if metric < self.backlog * _LOW_RATIO else 0
        if self._high[name] >= _HIGH_POINTS:
            desired = ceil(max(1, len(warm)) * metric / self.backlog)
            fleet.launch(pool, max(0, desired - len(pool.agents)))
        elif self._low[name] >= _LOW_POINTS and len(warm) == len(pool.agents) and pool.agents:
            fleet.end(self.chance.sample(list(pool.agents.values()), 1))
