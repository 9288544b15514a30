"""What every event of ``operate`` is: an order, which it makes for the domain, or a question."""

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.orders import (
    CloseBreaker,
    DrainAll,
    DrainNodes,
    DrainSome,
    EndInstance,
    Hold,
    PoolOverride,
    Purge,
    Release,
    Reserve,
    Resume,
    ResumeBudget,
    TeamOverride,
)
from autoscaler.domain.run_orders.choice import CancelRun, OrderRuns
from autoscaler.entry.events import Manual, Text

_OfAgents = DrainSome | DrainNodes | DrainAll | Reserve | Release | EndInstance
FleetOrder = Hold | Resume | ResumeBudget | CloseBreaker | PoolOverride | TeamOverride | Purge | _OfAgents
Order = FleetOrder | OrderRuns | CancelRun


class Operation(Manual):
    """The fields that every action accepts; ``order`` makes one for the domain, and a question has none."""

    action: str
    by: Text = "somebody who did not say who"

    @property
    def is_order(self) -> bool:
        """Tell whether it orders something, whatever the fleet file says to that."""
        return type(self).order is not Operation.order

    def order(self, _fleet: Fleet, _now: float) -> Order | None:
        """Check what the fleet file must know, and translate."""
        return None
