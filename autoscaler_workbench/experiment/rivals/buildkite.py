"""buildkite-agent-scaler: desired capacity from scheduled and running jobs, each ten seconds; bare, and as its Elastic CI Stack sets it.

Source: buildkite/buildkite-agent-scaler at 49c41453: scaler/scaler.go, scaler/scaling_calculator.go:100-152, lambda/main.go,
template.yaml, and aws-stack.yml of the Elastic CI Stack. Kept: booting instances count as capacity; the availability boost when fewer
than half of the agents report; the stack's 300 s between two scale-outs; the stack never shrinks the group itself, its instances leave
when all their agents were idle for ten minutes. Bare, the group is shrunk by setting its desired capacity, and the group picks whom to
end: a build may be killed.
"""

from dataclasses import dataclass, field

from autoscaler_workbench.experiment.policy.rival import Rival
from autoscaler_workbench.experiment.policy.rival_fleet import Agent, RivalFleet, RivalPool

_AVAILABLE = 0.5


@dataclass(kw_only=True)
class Buildkite(Rival):
    """Bare: the code's own defaults. ``instance_buffer``: instances beyond what is needed while anything is."""

    instance_buffer: int = 0
    scale_out_cooldown_seconds: float = 0.0
    shrinks: bool = True
    idle_seconds: float = 0.0  # 0: instances do not leave by themselves
    _last_out: dict[str, float] = field(default_factory=dict)

    NAME = "buildkite"
    KNOB = ("instance_buffer", (0, 1, 2, 5, 10))

    def tick(self, fleet: RivalFleet) -> None:
        """One turn of its inner loop."""
        for name, pool in fleet.pools.items():
            desired = self._desired(pool)
            if desired > len(pool.agents):
                if fleet.now - self._last_out.get(name, -1e9) >= self.scale_out_cooldown_seconds and self._grow(
                    fleet, pool, desired - len(pool.agents)
                ):
                    self._last_out[name] = fleet.now
            elif self.shrinks and desired < len(pool.agents):
                fleet.end(self.chance.sample(list(pool.agents.values()), len(pool.agents) - desired))
            if self.idle_seconds:
                self._retire(fleet, pool, [agent for agent in pool.idle if agent.idle_seconds(fleet.now) >= self.idle_seconds])

    def _grow(self, fleet: RivalFleet, pool: RivalPool, number: int) -> int:
        return fleet.launch(pool, number)

    def _retire(self, fleet: RivalFleet, pool: RivalPool, agents: list[Agent]) -> None:  # noqa: ARG002 - a warm pool may take them back
        fleet.end(agents)

    def _desired(self, pool: RivalPool) -> int:
        jobs = len(pool.waiting) + pool.running
        desired = pool.agents_for(jobs)
        reporting, actual = len(pool.online), len([a for a in pool.agents.values() if a.instance.state == "running"])
        if jobs and actual and reporting / actual < _AVAILABLE and actual == len(pool.agents):
            desired = max(desired, len(pool.agents) + 1)
        return desired + (min(self.instance_buffer, pool.agents_for(jobs)) if jobs else 0)


@dataclass(kw_only=True)
class BuildkiteStack(Buildkite):
    """With the Elastic CI Stack's defaults."""

    scale_out_cooldown_seconds: float = 300.0
    shrinks: bool = False
    idle_seconds: float = 600.0

    NAME = "buildkite-stack"
    KNOB = ("idle_seconds", (60, 300, 600, 1800, 3600))
