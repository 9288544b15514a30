"""What jobs cost, in memory, with the promises of the port."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from autoscaler.domain.facts.job_settings import CostBatch, MonthCosts
from autoscaler.errors import ConflictError, TransientError, UnansweredError
from autoscaler_workbench.fakes.world.faults import ConnectionLostError, Faults, StatusError


@dataclass(slots=True)
class InMemoryCosts:
    """The costs of one fleet. ``faults`` may fail any call, before or after it took effect."""

    kept: CostBatch = field(default_factory=CostBatch)
    months: dict[str, MonthCosts] = field(default_factory=dict)
    writes: int = 0
    faults: Faults = field(default_factory=Faults)

    def batch(self) -> CostBatch:
        """Read it."""
        with self._call("batch"):
            return self.kept

    def month(self, name: str) -> MonthCosts:
        """Read it."""
        with self._call("month"):
            return self.months.get(name, MonthCosts(name=name))

    def book(self, months: Sequence[MonthCosts], batch: CostBatch, at: float) -> None:  # noqa: ARG002 - memory forgets nothing
        """Replace all or nothing."""
        with self._call("book"):
            stale = [month.name for month in months if self.months.get(month.name, MonthCosts(name=month.name)).version != month.version]
            if stale or batch.version != self.kept.version:
                raise ConflictError("the costs were replaced meanwhile")
            self.months |= {month.name: replace(month, version=month.version + 1) for month in months}
            self.kept = replace(batch, version=batch.version + 1)
            self.writes += 1

    @contextmanager
    def _call(self, call: str) -> Iterator[None]:
        """Let a call fail as planned."""
        try:
            with self.faults.around(f"costs {call}"):
                yield
        except StatusError as error:
            raise TransientError(f"costs {call} failed") from error
        except ConnectionLostError as error:
            raise UnansweredError(f"costs {call} was not answered") from error
