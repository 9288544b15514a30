"""Begins an invocation of a handler, and tells what it counted beside a pass."""

from collections.abc import Mapping, Sequence

from autoscaler.bootstrap import Runtime
from autoscaler.control.observe import Invocation
from autoscaler.control.outcomes import Report, leave_note, places_of_reports
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.report.datum import Datum
from autoscaler.domain.report.metrics import heartbeat, held_by_teams, scaling
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
    of_pass: Sequence[Report] = (),
) -> None:
    """Tell counts of a function: as metrics, or in a note that `publish_metrics` reads.

    Each under the name of its metric; ``places``: where; ``of_pass``: what a completed pass did, which has its own places.
    """
    if wired.essential:
        leave_note(wired.ports, function, counts, places or places_of_reports(of_pass), completed=bool(of_pass))
    else:
        send_metrics(wired.ports, [*scaling(wired.fleet.name, counts), *(data_of_pass(wired.fleet, function, of_pass) if of_pass else ())])


def data_of_pass(fleet: Fleet, function: str, reports: Sequence[Report]) -> list[Datum]:
    """Describe what a pass held for teams, and that it was completed."""
    held = [held for report in reports for held in report.plan.held]
    return [*held_by_teams(fleet, held), heartbeat(fleet.name, function)]
