"""Like the Kubernetes cluster autoscaler: pending work is packed on nodes, upcoming ones first; unneeded nodes go after ten minutes.

Source: kubernetes/autoscaler cluster-autoscaler/FAQ.md, flags: scan-interval 10 s, scale-down-unneeded-time 10 min, scale-down-delay-
after-add 10 min, max-empty-bulk-delete 10. Only empty nodes are unneeded: builds are not safe to evict.
"""

from dataclasses import dataclass, field

from autoscaler_workbench.experiment.policy.rival import Rival
from autoscaler_workbench.experiment.policy.rival_fleet import RivalFleet

_EMPTY_AT_ONCE = 10


@dataclass(kw_only=True)
class ClusterAutoscaler(Rival):
    """``unneeded_seconds``: how long a node must have been empty; ``delay_after_add_seconds``: no scale-down so soon after a scale-up."""

    unneeded_seconds: float = 600.0
    delay_after_add_seconds: float = 600.0
    _added_at: float = field(default=-1e9)

    NAME = "cluster-autoscaler"
    KNOB = ("unneeded_seconds", (60, 300, 600, 1800, 3600))

    def tick(self, fleet: RivalFleet) -> None:
        """One scan."""
        for pool in fleet.pools.values():
            upcoming = pool.executors * len(pool.booting) + pool.free_executors
            if fleet.launch(pool, pool.agents_for(len(pool.waiting) - upcoming)):
                self._added_at = fleet.now
        if fleet.now - self._added_at < self.delay_after_add_seconds:
            return
        empty = [agent for pool in fleet.pools.values() for agent in pool.idle if agent.idle_seconds(fleet.now) >= self.unneeded_seconds]
        fleet.end(empty[:_EMPTY_AT_ONCE])
