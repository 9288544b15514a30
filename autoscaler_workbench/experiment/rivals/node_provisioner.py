"""Jenkins core's own way to ask a cloud for agents: exponential averages of the queue, on purpose slow to believe.

Source: jenkinsci/jenkins at ff9430ee: core/src/main/java/hudson/slaves/NodeProvisioner.java:213-339 and 829-831,
hudson/model/LoadStatistics.java:341-346, hudson/slaves/CloudRetentionStrategy.java:52-68. Kept: one job behind four busy executors is
believed after 200 s; a burst is asked for in steps over some two minutes. An agent is planned until it connects. Idle agents go after
``idle_minutes``, looked at each minute.
"""

from dataclasses import dataclass, field
from math import floor

from autoscaler_workbench.experiment.policy.rival import Rival
from autoscaler_workbench.experiment.policy.rival_fleet import RivalFleet, RivalPool

_DECAY = 0.9
_MARGIN, _MARGIN0, _MARGIN_DECAY = 0.10, 0.50, 0.5
_RETENTION_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One label at one moment, in executors."""

    queue: int
    available: int
    online: int
    connecting: int
    planned: int

    @classmethod
    def of(cls, pool: RivalPool) -> "Load":
        """Count a pool; what boots is planned."""
        online = pool.executors * len(pool.online)
        planned = pool.executors * len(pool.booting)
        return cls(queue=len(pool.waiting), available=pool.free_executors, online=online, connecting=0, planned=planned)


@dataclass(slots=True)
class Averages:
    """The exponential moving averages of one label, updated each ten seconds."""

    queue: float = 0.0
    available: float = 0.0
    connecting: float = 0.0
    planned: float = 0.0

    def update(self, load: Load) -> None:
        """Take one snapshot in."""
        for name in ("queue", "available", "connecting", "planned"):
            setattr(self, name, _DECAY * getattr(self, name) + (1 - _DECAY) * getattr(load, name))

    def excess(self, load: Load, additional: int = 0) -> int:
        """How many executors the standard strategy asks the cloud for now. ``additional``: what another strategy has just asked for."""
        nothing = load.available + load.connecting == 0 and load.online + load.planned + additional == 0
        need_some = nothing and load.queue > 0
        if load.queue <= load.available or not (max(load.available, self.available) < _MARGIN or need_some):
            return 0
        believed = min(self.queue, load.queue) - max(self.planned, load.planned) - additional - min(self.connecting, load.connecting)
        if need_some and believed < 1:
            believed = 1.0
        margin = _MARGIN + (_MARGIN0 - _MARGIN) * _MARGIN_DECAY**load.online
        return floor(believed + margin) if believed > 1 - margin else 0


@dataclass(kw_only=True)
class NodeProvisioner(Rival):
    """``idle_minutes``: of the cloud's retention strategy; 10 is what most clouds' forms begin with."""

    idle_minutes: float = 10.0
    _averages: dict[str, Averages] = field(default_factory=dict)

    NAME = "node-provisioner"
    KNOB = ("idle_minutes", (1, 5, 10, 30, 60))

    def tick(self, fleet: RivalFleet) -> None:
        """One update of every label, and retention once a minute."""
        for name, pool in fleet.pools.items():
            averages = self._averages.setdefault(name, Averages())
            load = Load.of(pool)
            averages.update(load)
            fleet.launch(pool, pool.agents_for(averages.excess(load)))
        if self.is_due(fleet.now, _RETENTION_SECONDS):
            fleet.end_idle(self.idle_minutes * 60)
