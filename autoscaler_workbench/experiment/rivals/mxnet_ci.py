"""The original handler of the MXNet CI: each five minutes, by the number of queued items and of idle nodes.

Source: apache/mxnet-ci services/jenkins-autoscaling/lambda_mxnet_ci/autoscaling/handler.py at 2644873e (2023-01-17), lines 132-423,
987-1042, 1432-1511, and environment.yml. Kept: one idle node of a label zeroes its whole demand; whatever is idle at the instant of a
look goes, however short; no cap but 20 launches a look; a warm pool larger than what is idle loses the whole look. Its nodes are marked
offline and read again before they are terminated, so a build is killed only on what others took offline, which nobody does here.
"""

from dataclasses import dataclass

from autoscaler_workbench.experiment.policy.rival import Rival
from autoscaler_workbench.experiment.policy.rival_fleet import Agent, RivalFleet, RivalPool

_UP_A_ROUND, _DOWN_A_ROUND = 20, 40
_MATURITY_SECONDS = 30.0
_STARTUP_SECONDS = {"linux": 300.0, "windows": 1800.0}


@dataclass(kw_only=True)
class MxnetCi(Rival):
    """``warm``: nodes of a pool that stay though they are idle; GPU pools keep none, as theirs did."""

    warm: int = 1

    NAME = "mxnet-ci"
    KNOB = ("warm", (0, 1, 2, 4, 8))
    tick_seconds = 300.0

    def tick(self, fleet: RivalFleet) -> None:
        """One round: demand, victims, limits; then the victims go, and the demand is launched."""
        try:
            victims = self._victims(fleet)
        except ValueError:
            return  # randrange(0, 0): the handler catches it around the whole round
        needs = self._limited({name: need for name, pool in fleet.pools.items() if (need := self._need(fleet, pool)) > 0})
        overdue = [
            a for pool in fleet.pools.values() for a in pool.booting if fleet.now - a.since > _STARTUP_SECONDS[str(pool.pool.platform)]
        ]
        fleet.end([*victims, *overdue])
        for name, need in needs.items():
            fleet.launch(fleet.pools[name], need)

    @staticmethod
    def _need(fleet: RivalFleet, pool: RivalPool) -> int:
        if pool.idle:
            return 0
        mature = sum(fleet.now - build.buildable_at >= _MATURITY_SECONDS for build in pool.waiting)
        return max(0, pool.agents_for(mature) - len(pool.booting))

    def _victims(self, fleet: RivalFleet) -> list[Agent]:
        pools = list(fleet.pools.values())
        self.chance.shuffle(pools)
        victims: list[Agent] = []
        for pool in pools:
            idle = pool.idle
            for _ in range(self.warm if idle and pool.executors > 1 else 0):
                idle.pop(self.chance.randrange(len(idle)))
            victims += idle
        return victims[:_DOWN_A_ROUND]

    @staticmethod
    def _limited(needs: dict[str, int]) -> dict[str, int]:
        total = sum(needs.values())
        if total <= _UP_A_ROUND:
            return needs
        left, limited = _UP_A_ROUND, {}
        for name, need in sorted(needs.items(), key=lambda item: item[1]):
            limited[name] = min(left, -(-need * _UP_A_ROUND // total))
            left -= limited[name]
        return limited
