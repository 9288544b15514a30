"""GitLab Runner with docker+machine: supply follows idle machines, never the queue.

Source: gitlab-runner at d79f3e7b: executors/docker/machine/provider.go:526-666, idle_limit_strategy.go, common/consts.go. Kept: the
defaults (IdleCount 0, IdleTime 0) make a machine for every job on demand and remove it as soon as it is idle; with IdleCount k a burst
of more than k is served in waves, since nothing looks at the queue. One machine runs one job there; here it has its pool's executors.
"""

from dataclasses import dataclass

from autoscaler_workbench.experiment.policy.rival import Rival
from autoscaler_workbench.experiment.policy.rival_fleet import RivalFleet, RivalPool


@dataclass(kw_only=True)
class Gitlab(Rival):
    """``idle_count``: machines that are to be idle; ``idle_seconds``: before a machine beyond them goes."""

    idle_count: int = 0
    idle_seconds: float = 0.0

    NAME = "gitlab"
    KNOB = ("idle_count", (0, 1, 2, 4, 8))
    tick_seconds = 5.0  # theirs is 3 s; nothing here happens so fast

    def tick(self, fleet: RivalFleet) -> None:
        """One turn of its loop over each pool."""
        for pool in fleet.pools.values():
            if pool.waiting or pool.agents or self.idle_count:
                self._turn(fleet, pool)

    def _turn(self, fleet: RivalFleet, pool: RivalPool) -> None:
        idle = pool.idle
        available = len(idle) + len(pool.booting)
        if self.idle_count:
            fleet.launch(pool, self.idle_count - available)
        else:
            # On demand: a job is taken only with a machine of its own, so those that boot are spoken for.
            fleet.launch(pool, len(pool.waiting) - len(pool.booting))
        for agent in idle:
            if agent.idle_seconds(fleet.now) > self.idle_seconds and available > self.idle_count:
                fleet.end([agent])
                available -= 1
