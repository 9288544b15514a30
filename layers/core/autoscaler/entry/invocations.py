"""Begins an invocation of a handler, and tells what it counted beside a pass."""

from collections.abc import Mapping, Sequence

from autoscaler.bootstrap import Runtime
from autoscaler.control.observe import Invocation
from autoscaler.control.outcomes import leave_note
from autoscaler.domain.report.datum import Datum
from autoscaler.domain.report.metrics import scaling
from autoscaler.entry.events import Context
from autoscaler.telemetry import send_metrics


def begin(
    wired: Runtime,
    context: Context,
    by: str,
    *,
    dry_run: bool = False,
    by_a_person: bool = False,
) -> Invocation:
    """Begin an invocation, which ends when Lambda cuts it off."""
    return Invocation(
        request_id=context.aws_request_id,
        ends_at=wired.ports.clock() + context.get_remaining_time_in_millis() / 1000.0,
        by=by,
        dry_run=dry_run,
        by_a_person=by_a_person,
    )


def tell_counts(
    wired: Runtime,
    function: str,
    counts: Mapping[str, int],
    places: Mapping[str, Sequence[str]] | None = None,
    of_pass: Sequence[Datum] = (),
) -> None:
    """Tell counts of a function: as metrics, or in a note that `publish_metrics` reads.

    Each under the name of its metric; ``places``: where; ``of_pass``: metrics beside them, of a pass that was completed.
    """
    if wired.essential:
        leave_note(wired.ports, function, counts, places or {}, completed=bool(of_pass))
    else:
        send_metrics(wired.ports, [*scaling(wired.fleet.name, counts), *of_pass])
