"""A bound, not a rival: it knows every arrival and every duration, and launches one boot ahead.

It keeps what will be needed again within ``keep_boots`` boots, and ends the rest at once: at one boot, no agent idles for longer than
another would take to come.
"""

from dataclasses import dataclass

from autoscaler_workbench.experiment.policy.rival import Rival
from autoscaler_workbench.experiment.policy.rival_fleet import RivalFleet, RivalPool

# The slowest boot of the world: pending, booting at the wide end of its spread, connecting.
_SLOWEST, _BEYOND_SECONDS = 1.35, 27.0


@dataclass(kw_only=True)
class Clairvoyant(Rival):
    """``keep_boots``: how far ahead, in boots, an idle agent is kept for."""

    keep_boots: float = 1.0

    NAME = "clairvoyant"
    KNOB = ("keep_boots", (0.5, 1.0, 2.0, 5.0, 10.0))

    def tick(self, fleet: RivalFleet) -> None:
        """Have what will be needed when it is needed."""
        for name, pool in fleet.pools.items():
            self._follow(fleet, name, pool)

    def _follow(self, fleet: RivalFleet, name: str, pool: RivalPool) -> None:
        curve = fleet.forecast.curves.get(name) if fleet.forecast else None
        if curve is None:
            return
        lead = pool.pool.boot_seconds * _SLOWEST + _BEYOND_SECONDS + self.tick_seconds
        now = len(pool.waiting) + pool.running  # what is late is made good
        fleet.launch(pool, pool.agents_for(max(now, curve.most(fleet.now, fleet.now + lead))) - len(pool.agents))
        keep = pool.agents_for(max(now, curve.most(fleet.now, fleet.now + self.keep_boots * lead)))
        fleet.end(pool.idle[: max(0, len(pool.agents) - keep)])
