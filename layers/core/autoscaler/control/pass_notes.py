"""Leaves a note of what a pass counted, for the look that measures. A note that fails fails no pass."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from autoscaler.control.report import Outcome, Report, boots_failed, starts_failed
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.plan import Cordon, LeaveLost, Step
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.report.datum import PassNotes, noted
from autoscaler.errors import AutoscalerError, ConflictError
from autoscaler.ports import Ports

# Two invocations of one function seldom overlap; three do not.
_TRIES = 3
_HOLDS = {Reason.EC2_DISAGREES: "Ec2Disagrees", Reason.SWEEP_LIMIT: "SweepsStopped"}


def leave_note(
    ports: Ports, function: str, counts: Mapping[str, int], places: Mapping[str, Sequence[str]], *, completed: bool = False
) -> None:
    """Add to the notes of a function. One that another invocation wrote meanwhile is read again, so that nothing is counted away."""
    try:
        for _ in range(_TRIES):
            notes = noted(ports.state.pass_notes(function), ports.clock(), counts, places, completed=completed)
            if notes is None or _is_saved(ports, function, notes):
                return
    except AutoscalerError as error:
        ports.log("pass_not_noted", function=function, error=f"{type(error).__name__}: {error}")
    else:
        ports.log("pass_not_noted", function=function, error="other invocations were faster")


def _is_saved(ports: Ports, function: str, notes: PassNotes) -> bool:
    try:
        ports.state.save_pass_notes(function, notes)
    except ConflictError:
        return False
    return True


def places_of_reports(reports: Iterable[Report]) -> dict[str, list[str]]:
    """Where passes counted what, by the names of the counts."""
    found: dict[str, list[str]] = {}
    for report in reports:
        for name, place in _places(report):
            found.setdefault(name, []).append(place)
    return found


def _places(report: Report) -> Iterator[tuple[str, str]]:
    for failure in boots_failed(report):
        yield "BootFailures", f"pool {failure.pool} ({failure.instance_id})"
    yield from (("StartsFailed", f"pool {pool}") for pool in starts_failed(report))
    for held in report.plan.held:
        if held.reason in _HOLDS:
            yield _HOLDS[held.reason], f"pool {held.pool} of {held.controller}" if held.pool else held.detail
    for result in report.results:
        if result.outcome is Outcome.DONE:
            yield from _done(result.step)


def _done(step: Step) -> Iterator[tuple[str, str]]:
    match step:
        case Cordon(pool=pool, node=node, mark=mark) if mark.kind is MarkClass.QUARANTINE:
            yield "Quarantines", f"{node} of pool {pool}"
        case LeaveLost(pool=pool, job=job) if step.reason is not Reason.REPEATED_BY_PERSON:
            yield "BuildsLeft", f"{job} in pool {pool}"
