"""What a fleet keeps, in memory: the stores that take the place of the state table, CloudWatch and SNS."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from aws_lambda_powertools.utilities.idempotency.exceptions import IdempotencyItemAlreadyExistsError, IdempotencyItemNotFoundError
from aws_lambda_powertools.utilities.idempotency.persistence.base import BasePersistenceLayer, DataRecord

from autoscaler.adapters.telling import EssentialMetrics
from autoscaler.bootstrap import Runtime
from autoscaler_workbench.fakes.costs import InMemoryCosts
from autoscaler_workbench.fakes.run_orders import InMemoryRunOrders
from autoscaler_workbench.fakes.slots import InMemorySlots
from autoscaler_workbench.fakes.state import (
    InMemoryHistory,
    InMemoryJobs,
    InMemoryMetrics,
    InMemoryNotifier,
    InMemoryState,
    InMemoryTelemetry,
)


class CompletedRequests(BasePersistenceLayer):
    """Powertools' store of completed requests, without a table. Nothing expires: no test lives for a day."""

    def __init__(self) -> None:
        super().__init__()
        self.records: dict[str, DataRecord] = {}

    def _get_record(self, idempotency_key: str) -> DataRecord:
        if idempotency_key not in self.records:
            raise IdempotencyItemNotFoundError
        return self.records[idempotency_key]

    def _put_record(self, data_record: DataRecord) -> None:
        if known := self.records.get(data_record.idempotency_key):
            raise IdempotencyItemAlreadyExistsError(old_data_record=known)
        self.records[data_record.idempotency_key] = data_record

    def _update_record(self, data_record: DataRecord) -> None:
        self.records[data_record.idempotency_key] = data_record

    def _delete_record(self, data_record: DataRecord) -> None:
        self.records.pop(data_record.idempotency_key, None)


@dataclass
class KeptSlots(InMemorySlots):
    """A queue that keeps its messages: the slot, when it is, and when it was announced. Tests wake the function themselves."""

    after: Callable[[float, Callable[[], None]], None] = lambda _seconds, _happen: None
    announced: list[tuple[str, float, float]] = field(default_factory=list)

    def _send(self, name: str, at: float, now: float) -> None:
        self.announced.append((name, at, now))


@dataclass(slots=True)
class Stored:
    """The stores of one fleet. They outlive `bootstrap.reset`, as a table does."""

    slots: KeptSlots = field(default_factory=KeptSlots)
    state: InMemoryState = field(default_factory=InMemoryState)
    metrics: InMemoryMetrics = field(default_factory=InMemoryMetrics)
    history: InMemoryHistory = field(default_factory=InMemoryHistory)
    jobs: InMemoryJobs = field(default_factory=InMemoryJobs)
    costs: InMemoryCosts = field(default_factory=InMemoryCosts)
    run_orders: InMemoryRunOrders = field(default_factory=InMemoryRunOrders)
    notifier: InMemoryNotifier = field(default_factory=InMemoryNotifier)
    completed: CompletedRequests = field(default_factory=CompletedRequests)

    def wired(self, runtime: Callable[[], Runtime]) -> Runtime:
        """Wire the stores into the runtime that production wires; what the environment leaves out stays out."""
        deployed = runtime()
        ports = deployed.ports
        stores: dict[str, Any] = {
            "state": self.state,
            "lease": self.state,
            "rate_limiter": self.state,
            "reruns": self.state,
            "telemetry": InMemoryTelemetry(self.state),
            "metrics": EssentialMetrics(self.metrics) if deployed.essential else self.metrics,
            "history": self.history,
            "jobs": self.jobs,
            "costs": self.costs,
            "run_orders": self.run_orders,
        }
        if ports.notifier:
            self.notifier.runbooks = ports.notifier.runbooks
            stores["notifier"] = self.notifier
        if ports.slots:
            stores["slots"] = self.slots
        return replace(deployed, ports=replace(ports, **stores))
