"""The functions in process with all the metrics that they publish in Lambda, for those who draw them."""

from collections.abc import Callable

from autoscaler.control.observe import Invocation
from autoscaler.control.outcomes import Report, counts_of
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.report.metrics import heartbeat, scaling
from autoscaler.entry.invocations import data_of_pass
from autoscaler.ports import Ports
from autoscaler_workbench.simulate.drive import InMemory, InProcess


class InProcessMeasured(InProcess):
    """In process, with metrics."""

    def publish_metrics(self) -> None:
        """Learn and publish, and say so."""
        InMemory.publish_metrics(self)
        self.metrics.publish([heartbeat(self.fleet.name, "publish_metrics")], self.ports.clock())

    def _note(self, function: str, run: Callable[[Ports, Fleet, Invocation], list[Report]]) -> list[Report]:
        reports = super()._note(function, run)
        told = [*scaling(self.fleet.name, counts_of(reports)), *data_of_pass(self.fleet, function, reports)]
        self.metrics.publish(told, self.ports.clock())
        return reports
