"""terraform-aws-github-runner with the warm pool of its pull request 5204: a sweep stops what is idle, a job starts it again.

Source: github-aws-runners/terraform-aws-github-runner, pull request 5204 (open): docs/warm-pool.md at 32a47e72 and docs/adr/
001-warm-pool-hibernation.md at 53eced74 (three states; max_warm_instances 3, max_warm_age_hours 168, pool_strategy hot),
src/scale-runners/scale-down.ts at 3cbd1348, src/aws/warm-pool.ts at 32a47e72 (the longest stopped first), src/scale-runners/
ec2-scale-up-warm-pool.test.ts at 3cbd1348. Kept: the sweep stops three idle runners of each configuration, a pool here, and terminates
those beyond; warm ones are terminated after a week; a job starts the longest stopped one before anything is launched. What fails to
start, one that still stops included, is forgotten, and its disk is paid on. Stopped ones fill no limit: runners_maximum_count is compared
with pending and running ones (src/aws/ec2-runners.ts at 221d6ab8). A runner that does not stop is terminated. No schedule keeps a pool,
as by default. Assumed, since that code is not in what was read: a runner beyond the three goes at once, as the ADR has it. Spot runners
are terminated: persistent requests, which can stop, are not modelled.
"""

from dataclasses import dataclass, field

from autoscaler_workbench.experiment.policy.rival_fleet import Agent, RivalFleet, RivalPool
from autoscaler_workbench.experiment.rivals.github_runners import GithubRunners


@dataclass(kw_only=True)
class GithubRunnersWarm(GithubRunners):
    """``max_warm``: stopped runners of a pool; ``max_warm_hours``: how long one may be stopped."""

    max_warm: int = 3
    max_warm_hours: float = 168.0
    _forgotten: set[str] = field(default_factory=set)

    NAME = "github-runners-warm"
    KNOB = ("max_warm", (1, 3, 5, 10, 20))

    def _ask(self, fleet: RivalFleet, pool: RivalPool) -> None:
        if fleet.room(pool) <= 0:
            return
        for agent in self._warm(pool):
            if fleet.start(pool, [agent]):
                return
            self._forgotten.add(agent.instance.id)
        fleet.launch(pool, 1)

    def _retire(self, fleet: RivalFleet, pool: RivalPool, agent: Agent) -> None:
        full = len(self._warm(pool)) >= self.max_warm
        fleet.end([agent] if full else fleet.stop([agent]))

    def _sweep(self, fleet: RivalFleet, pool: RivalPool) -> None:
        oldest = fleet.now - self.max_warm_hours * 3600
        fleet.end(agent for agent in self._warm(pool) if (agent.instance.spells[-1].ended_at or fleet.now) < oldest)
        super()._sweep(fleet, pool)

    def _warm(self, pool: RivalPool) -> list[Agent]:
        """Those that its table lists, whether they have stopped yet or not."""
        return [agent for agent in pool.stopped.values() if agent.instance.id not in self._forgotten]
