"""The Elastic CI Stack with a warm pool of its Auto Scaling group: instances that booted once wait stopped beside the group.

Source: Amazon EC2 Auto Scaling, user guide "Warm pools" and API PutWarmPool (PoolState Stopped, MinSize 0, MaxGroupPreparedCapacity,
InstanceReusePolicy); buildkite/elastic-ci-stack-for-aws pull requests 838 and 966 and issue 822, and buildkite/
terraform-buildkite-elastic-ci-stack-for-aws pull request 148: none of them is merged. The rest is the stack as in `buildkite`. Kept:
instances are launched into the pool, boot without starting an agent, and stop; scaling out takes from the pool, launches cold for the
rest, and the pool is refilled; what still boots for the pool is not taken; without reuse_on_scale_in, false by default, an instance
that was used is terminated, and a new one boots in its place. Mixed and spot groups have no warm pool: it is on-demand only. Warm ones
do not fill the group, which counts what it has in service; together they are at most MaxGroupPreparedCapacity. That is by default the
group's maximum: 10, the stack's MaxSize, where a pool's limit is higher. Assumed: where EC2 has no machine for a stopped instance, the
group launches another one.
"""

from dataclasses import dataclass

from autoscaler_workbench.experiment.policy.rival_fleet import Agent, RivalFleet, RivalPool
from autoscaler_workbench.experiment.rivals.buildkite import BuildkiteStack


@dataclass(kw_only=True)
class BuildkiteStackWarm(BuildkiteStack):
    """``prepared``: in the group and its warm pool together; ``min_warm``: in the warm pool, however large the group is."""

    prepared: int = 10
    min_warm: int = 0
    reuse_on_scale_in: bool = False

    NAME = "buildkite-stack-warm"
    KNOB = ("prepared", (2, 5, 10, 20, 50))

    def tick(self, fleet: RivalFleet) -> None:
        """Scale as without a warm pool; then the pool is brought to its size."""
        super().tick(fleet)
        for pool in fleet.pools.values():
            lacking = self._size(pool) - len(pool.stopped)
            fleet.prepare(pool, lacking)
            fleet.end(pool.startable[: max(0, -lacking)])

    def _size(self, pool: RivalPool) -> int:
        return max(self.min_warm, min(self.prepared, pool.pool.max_agents) - len(pool.agents))

    def _grow(self, fleet: RivalFleet, pool: RivalPool, number: int) -> int:
        started = len(fleet.start(pool, pool.startable[:number]))
        return started + fleet.launch(pool, number - started)

    def _retire(self, fleet: RivalFleet, pool: RivalPool, agents: list[Agent]) -> None:
        # An instance that leaves makes room for one in the pool.
        back = agents[: max(0, self._size(pool) + len(agents) - len(pool.stopped))] if self.reuse_on_scale_in else []
        fleet.end([*fleet.stop(back), *agents[len(back) :]])
