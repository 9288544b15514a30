"""terraform-aws-github-runner with reusable runners: one launch per queued job, a sweep over idle runners each five minutes.

Source: github-aws-runners/terraform-aws-github-runner at 4475534a: lambdas/functions/control-plane/src/scale-runners/scale-up.ts,
scale-down.ts:199-394, variables.tf. Kept: a job that is still queued 30 s after its event launches one runner, whoever else is booting
for it; idle means not busy at the look and older than five minutes; the idle quota is used up by the first runners past that age, busy
or not. ``runners_maximum_count``, 3 by default, is the pool's own limit here, as everybody has to raise it.
"""

from collections import deque
from dataclasses import dataclass, field

from autoscaler_workbench.experiment.policy.rival import Rival
from autoscaler_workbench.experiment.policy.rival_fleet import Agent, RivalFleet, RivalPool
from autoscaler_workbench.fakes.world.jenkins.builds import Build

_DELAY_SECONDS = 30.0
_SWEEP_SECONDS = 300.0
_MINIMUM_RUNNING_SECONDS = {"linux": 300.0, "windows": 900.0}


@dataclass(kw_only=True)
class GithubRunners(Rival):
    """``idle_count``: runners that a sweep leaves though they are idle (``idle_config``)."""

    idle_count: int = 0
    _events: deque[tuple[float, str, Build]] = field(default_factory=deque)
    _last_id: int = 0

    NAME = "github-runners"
    KNOB = ("idle_count", (0, 1, 2, 5, 10))

    def tick(self, fleet: RivalFleet) -> None:
        """Take what the webhooks brought, then sweep when it is time."""
        fresh = list(fleet.queued_since(self._last_id))
        for name, build in reversed(fresh):
            self._events.append((build.queued_at + _DELAY_SECONDS, name, build))
            self._last_id = max(self._last_id, build.id)
        while self._events and self._events[0][0] <= fleet.now:
            _, name, build = self._events.popleft()
            if build.started_at is None and build.ended is None:
                self._ask(fleet, fleet.pools[name])
        if self.is_due(fleet.now, _SWEEP_SECONDS):
            for pool in fleet.pools.values():
                self._sweep(fleet, pool)

    def _ask(self, fleet: RivalFleet, pool: RivalPool) -> None:
        fleet.launch(pool, 1)

    def _retire(self, fleet: RivalFleet, pool: RivalPool, agent: Agent) -> None:  # noqa: ARG002 - who stops some asks how many there are
        fleet.end([agent])

    def _sweep(self, fleet: RivalFleet, pool: RivalPool) -> None:
        quota = self.idle_count
        for agent in sorted(pool.agents.values(), key=lambda agent: -agent.since):
            if agent.node is None or fleet.now <= agent.since + _MINIMUM_RUNNING_SECONDS[str(pool.pool.platform)]:
                continue
            if quota > 0:
                quota -= 1
            elif agent.idle:
                self._retire(fleet, pool, agent)
