"""Jenkins' EC2 Fleet plugin with "no delay provisioning".

Source: jenkinsci/ec2-fleet-plugin at f2adaad1: EC2FleetCloud.java:72-77, 260-263, 412-566, 633-655,
NoDelayProvisionStrategy.java:29-91, IdleRetentionStrategy.java, docs/CONFIGURATION-OPTIONS.md. Kept: executors that connect are not
counted, planned nodes are until they are online or 180 s have passed (an agent that boots for longer is launched twice); by default (0
minutes) nothing is ever scaled down. The form's sizes, 1 to 1, are 0 and the pool's limit here, as everybody has to change them.
"""

from dataclasses import dataclass

from autoscaler_workbench.experiment.policy.rival import Rival
from autoscaler_workbench.experiment.policy.rival_fleet import RivalFleet, RivalPool

_RETENTION_SECONDS = 60.0


@dataclass(kw_only=True)
class Ec2FleetPlugin(Rival):
    """``idle_minutes`` 0: never scale down, as the plugin's default has it."""

    idle_minutes: float = 0.0
    online_timeout_seconds: float = 180.0

    NAME = "ec2-fleet-plugin"
    KNOB = ("idle_minutes", (0, 1, 5, 10, 30, 60))

    def tick(self, fleet: RivalFleet) -> None:
        """One update of every cloud, and retention once a minute."""
        for pool in fleet.pools.values():
            fleet.launch(pool, pool.agents_for(len(pool.waiting) - pool.free_executors - self._planned(fleet, pool)))
        if self.idle_minutes and self.is_due(fleet.now, _RETENTION_SECONDS):
            fleet.end_idle(self.idle_minutes * 60)

    def _planned(self, fleet: RivalFleet, pool: RivalPool) -> int:
        return pool.executors * sum(fleet.now - agent.since < self.online_timeout_seconds for agent in pool.booting)
