"""Jenkins' EC2 plugin with "no delay provisioning", over Jenkins core's strategy.

Source: jenkinsci/ec2-plugin at 05f9d511: NoDelayProvisionerStrategy.java:26-76, EC2Cloud.java:1089-1210,
EC2RetentionStrategy.java:151-311. Kept: the demand is divided by the executors and rounded down, one at least; what was just asked for
counts as nodes, not as executors; core's strategy is consulted for the rest; between the end of a launch and the first sign of its
agent (one look, here) an instance is counted by nobody.
"""

from dataclasses import dataclass, field

from autoscaler_workbench.experiment.policy.rival import Rival
from autoscaler_workbench.experiment.policy.rival_fleet import Agent, RivalFleet, RivalPool
from autoscaler_workbench.experiment.rivals.node_provisioner import Averages, Load

_RETENTION_SECONDS = 60.0


@dataclass(kw_only=True)
class Ec2Plugin(Rival):
    """``idle_minutes``: the form's 30 by default."""

    idle_minutes: float = 30.0
    _averages: dict[str, Averages] = field(default_factory=dict)
    _running_since: dict[str, float] = field(default_factory=dict)  # by instance, and how often it was started again

    NAME = "ec2-plugin"
    KNOB = ("idle_minutes", (1, 5, 10, 30, 60))

    def tick(self, fleet: RivalFleet) -> None:
        """One update of every label, and retention once a minute."""
        for name, pool in fleet.pools.items():
            self._provision(fleet, pool, self._averages.setdefault(name, Averages()))
        if self.is_due(fleet.now, _RETENTION_SECONDS):
            self._retire(fleet)

    def _ask(self, fleet: RivalFleet, pool: RivalPool, number: int) -> int:
        """Ask EC2 for agents; return how many come."""
        return fleet.launch(pool, number)

    def _retire(self, fleet: RivalFleet) -> None:
        fleet.end_idle(self.idle_minutes * 60)

    def _provision(self, fleet: RivalFleet, pool: RivalPool, averages: Averages) -> None:
        load = self._load(fleet, pool)
        averages.update(load)
        capacity, asked = load.available + load.connecting + load.planned, 0
        if capacity < load.queue:
            asked = self._ask(fleet, pool, max(1, (load.queue - capacity) // pool.executors))
        if capacity + asked < load.queue:
            excess = averages.excess(load, additional=asked)
            self._ask(fleet, pool, max(1, excess // pool.executors) if excess else 0)

    def _load(self, fleet: RivalFleet, pool: RivalPool) -> Load:
        planned = connecting = 0
        for agent in pool.booting:
            if agent.instance.state == "pending":
                planned += 1
            elif self._is_seen(fleet, agent):
                connecting += 1
        return Load(
            queue=len(pool.waiting),
            available=pool.free_executors,
            online=pool.executors * len(pool.online),
            connecting=pool.executors * connecting,
            planned=pool.executors * planned,
        )

    def _is_seen(self, fleet: RivalFleet, agent: Agent) -> bool:
        life = f"{agent.instance.id}/{agent.instance.life}"
        return fleet.now - self._running_since.setdefault(life, fleet.now) >= self.tick_seconds
