"""A static fleet: machines that always run, as many of each pool as a share of the most that the trace ever needs at once.

Its size is chosen by somebody who knows the whole trace; they are billed from its beginning to its end.
"""

from dataclasses import dataclass

from workbench.rivals.policy import Rival
from workbench.rivals.site import Site


@dataclass(kw_only=True)
class Static(Rival):
    """``share`` of the peak, at least one agent in each pool."""

    share: float = 0.5

    NAME = "static"
    KNOB = ("share", (0.1, 0.25, 0.5, 0.75, 1.0))
    tick_seconds = 600.0

    def begin(self, site: Site) -> None:
        """Launch everything, once."""
        for name, pool in site.pools.items():
            peak = site.foreseen.peak(name) if site.foreseen else 0
            if peak:
                site.launch(pool, max(1, pool.agents_for(self.share * peak)))

    def tick(self, site: Site) -> None:
        """Do nothing."""
