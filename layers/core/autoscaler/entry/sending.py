"""Sending metrics of what was done: it is done, whether CloudWatch hears of it or not."""

from autoscaler.bootstrap import Runtime
from autoscaler.domain.report.datum import Datum
from autoscaler.errors import TransientError
from autoscaler.telemetry import log


def send(wired: Runtime, data: list[Datum]) -> None:
    """Send a scaling function's metrics; what it did is done, whether CloudWatch hears of it or not."""
    try:
        wired.ports.metrics.publish(data, wired.ports.clock())
    except TransientError as error:
        log("metrics_not_sent", error=str(error))
