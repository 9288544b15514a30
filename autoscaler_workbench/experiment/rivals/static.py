"""A static fleet: machines that always run, as many of each pool as a share of the most that the trace ever needs at once.

Its size is chosen by somebody who knows the whole trace; they are billed from its beginning to its end. What is lost, or could not be
had, is asked for again, as an Auto Scaling group of a fixed size does.
"""

from dataclasses import dataclass, field

from autoscaler_workbench.experiment.policy.rival import Rival
from autoscaler_workbench.experiment.policy.rival_fleet import RivalFleet


@dataclass(kw_only=True)
class Static(Rival):
    """``share`` of the peak, at least one agent in each pool."""

    share: float = 0.5

    NAME = "static"
    KNOB = ("share", (0.1, 0.25, 0.5, 0.75, 1.0))
    tick_seconds = 60.0
    _sizes: dict[str, int] = field(default_factory=dict)

    def begin(self, fleet: RivalFleet) -> None:
        """Choose the sizes, and launch everything."""
        for name, pool in fleet.pools.items():
            peak = fleet.forecast.peak(name) if fleet.forecast else 0
            if peak:
                self._sizes[name] = max(1, pool.agents_for(self.share * peak))
        self.tick(fleet)

    def tick(self, fleet: RivalFleet) -> None:
        """Launch what is missing."""
        for name, size in self._sizes.items():
            pool = fleet.pools[name]
            fleet.launch(pool, size - len(pool.agents))
