"""Like Karpenter: pending work is batched for some seconds and packed; an empty node goes after consolidateAfter and a validation.

Source: kubernetes-sigs/karpenter pkg/operator/options/options.go:135-136 (batch 1 s idle, 10 s at most), disruption/consolidation.go:45
(15 s of validation), NodePool API v1 (consolidateAfter 0 s, budget 10 % of the nodes). Only empty nodes are disrupted: builds are not
safe to evict.
"""

from dataclasses import dataclass
from math import ceil

from autoscaler_workbench.experiment.policy.rival import Rival
from autoscaler_workbench.experiment.policy.rival_fleet import RivalFleet

_VALIDATION_SECONDS = 15.0
_BUDGET = 0.1


@dataclass(kw_only=True)
class Karpenter(Rival):
    """``consolidate_after_seconds``: how long a node may be empty."""

    consolidate_after_seconds: float = 0.0

    NAME = "karpenter"
    KNOB = ("consolidate_after_seconds", (0, 60, 300, 900, 1800, 3600))

    def tick(self, fleet: RivalFleet) -> None:
        """One batch, and one round of disruption."""
        for pool in fleet.pools.values():
            upcoming = pool.executors * len(pool.booting) + pool.free_executors
            fleet.launch(pool, pool.agents_for(len(pool.waiting) - upcoming))
            ready = self.consolidate_after_seconds + _VALIDATION_SECONDS
            empty = [agent for agent in pool.idle if agent.idle_seconds(fleet.now) >= ready]
            fleet.end(empty[: ceil(_BUDGET * len(pool.agents))])
