"""Tells what was counted beside a pass: as metrics, or in a note that `publish_metrics` reads."""

from collections.abc import Mapping, Sequence

from autoscaler.bootstrap import Runtime
from autoscaler.control.outcomes import leave_note
from autoscaler.domain.report.metrics import scaling
from autoscaler.telemetry import send_metrics


def tell_counts(wired: Runtime, function: str, counts: Mapping[str, int], places: Mapping[str, Sequence[str]] | None = None) -> None:
    """Tell counts of a function, each under the name of its metric; ``places``: where."""
    if wired.essential:
        leave_note(wired.ports, function, counts, places or {})
    else:
        send_metrics(wired.ports, scaling(wired.fleet.name, counts))
