"""What people ordered to be run, in memory, with the promises of the port."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from autoscaler.domain.facts.started_builds import RunOrder
from autoscaler.errors import ConflictError, TransientError, UnansweredError
from autoscaler_workbench.fakes.world.faults import ConnectionLostError, Faults, StatusError


@dataclass(slots=True)
class InMemoryRunOrders:
    """The orders of one fleet, open or ended, by id. ``unreadable``: ids of those that another version wrote.

    ``faults`` may fail any call, before or after it took effect.
    """

    orders: dict[str, RunOrder] = field(default_factory=dict)
    unreadable: set[str] = field(default_factory=set)
    faults: Faults = field(default_factory=Faults)

    def open_orders(self) -> tuple[RunOrder, ...]:
        """Find them."""
        with self._call("open_orders"):
            found = [order for order in self.orders.values() if order.is_open and order.id not in self.unreadable]
            return tuple(sorted(found, key=lambda order: (order.created_at, order.id)))

    def order(self, order_id: str) -> RunOrder | None:
        """Read one."""
        with self._call("order"):
            if order_id in self.unreadable:
                raise TransientError(f"order {order_id}: another version wrote it")
            return self.orders.get(order_id)

    def ended(self, most: int) -> tuple[RunOrder, ...]:
        """Find the last ones."""
        with self._call("ended"):
            found = [(order.ended_at, order.id) for order in self.orders.values() if order.ended_at is not None]
            last = [order_id for _, order_id in sorted(found, reverse=True) if order_id not in self.unreadable]
            return tuple(self.orders[order_id] for order_id in last[:most])

    def add_order(self, order: RunOrder) -> None:
        """Write a new one."""
        with self._call("add_order"):
            if order.id in self.orders:
                raise ConflictError("there is an order of this id")
            self.orders[order.id] = order

    def change_order(self, order: RunOrder) -> RunOrder:
        """Replace an open one of this version."""
        with self._call("change_order"):
            known = self.orders.get(order.id)
            if known is None or not known.is_open or known.version != order.version:
                raise ConflictError("the order was changed meanwhile")
            self.orders[order.id] = replace(order, version=order.version + 1)
            return self.orders[order.id]

    @contextmanager
    def _call(self, name: str) -> Iterator[None]:
        try:
            with self.faults.around(f"run_orders {name}"):
                yield
        except ConnectionLostError as error:
            raise UnansweredError("the orders did not answer") from error
        except StatusError as error:
            raise TransientError("the orders were answered with an error") from error
