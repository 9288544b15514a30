"""What became of a plan's steps: in the log, in metrics, in notes for the next look, and in the history."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from typing import Any

from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.plan import (
    Cordon,
    FinishStop,
    Launch,
    LeaveLost,
    Plan,
    Rotate,
    RunAgain,
    Start,
    Step,
    Stop,
    Terminate,
)
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.grouping import grouped
from autoscaler.domain.report.datum import noted
from autoscaler.domain.report.told import Event
from autoscaler.domain.wording import LONGEST_DETAIL, LONGEST_RESULT, shortened
from autoscaler.errors import AutoscalerError, ConflictError
from autoscaler.ports import Ports

# Reports what became of a plan: one line a step, with decision and result.


class Outcome(StrEnum):
    """The outcome of one step."""

    PLANNED = "planned"  # a dry run
    DONE = "done"
    SKIPPED = "skipped"  # the world had changed: acting would have been wrong
    FAILED = "failed"  # the next pass will try again


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One step and its outcome; ``count`` is the number of agents that a launch or a start got."""

    step: Step
    outcome: Outcome
    detail: str = ""
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One pass: its plan and the results."""

    plan: Plan
    results: tuple[Result, ...]
    dry_run: bool
    unresponsive: frozenset[str] = frozenset()  # controllers that stopped answering while it acted

    @property
    def failed(self) -> frozenset[str]:
        """Name the controllers that could not be read or stopped answering."""
        return self.unresponsive | {held.controller for held in self.plan.held if held.reason is Reason.INCOMPLETE}


def done(results: Iterable[Result], kind: type[Step]) -> int:
    """Count what was done of one kind; launches and starts count agents."""
    return sum(r.count for r in results if isinstance(r.step, kind) and r.outcome is Outcome.DONE)


def starts_failed(report: Report) -> dict[str, int]:
    """Count the starts that EC2 refused or did not answer, and those whose agent did not come, by pool."""
    failed = Counter(failure.pool for failure in report.plan.boot_failures if failure.of_start)
    for result in report.results:
        step = result.step
        if result.outcome not in {Outcome.DONE, Outcome.FAILED}:
            continue
        if isinstance(step, Start) and step.count > result.count:
            failed[step.pool] += step.count - result.count
        elif isinstance(step, FinishStop) and step.reason is Reason.START_FAILED:
            failed[step.pool] += 1
    return failed


def as_json(report: Report) -> dict[str, Any]:
    """Write a pass as the JSON that functions answer and log."""
    return {
        "pass_id": report.plan.pass_id,
        "taken_at": datetime.fromtimestamp(report.plan.taken_at, UTC).isoformat(),
        "dry_run": report.dry_run,
        "steps": [step_json(result) for result in report.results],
        "held": [
            {"controller": held.controller, "pool": held.pool, "reason": str(held.reason), "detail": held.detail}
            | ({"limit_of": held.limit_of} if held.limit_of else {})
            for held in report.plan.held
        ],
    }


def merged_json(reports: Iterable[Report]) -> dict[str, Any]:
    """Write several passes of one invocation as one plan, with the time of the last."""
    parts = [as_json(report) for report in reports]
    held = {(h["pool"], h["reason"], h["detail"]): h for part in parts for h in part["held"]}
    return parts[-1] | {"steps": [step for part in parts for step in part["steps"]], "held": list(held.values())}


def step_json(result: Result) -> dict[str, Any]:
    """Write a step and its outcome, likewise."""
    step = result.step
    facts: dict[str, Any] = {"step": step.name, "controller": step.controller}
    for name in ("pool", "count", "node", "instance_id", "item", "job"):  # some have no count, item or job
        if (value := getattr(step, name, None)) is not None:
            facts[name] = value
    facts |= {"reason": str(step.reason), "detail": shortened(step.detail, LONGEST_DETAIL), "outcome": str(result.outcome)}
    if isinstance(step, Start):
        facts["instance_ids"] = list(step.instance_ids)
        facts["started"] = result.count if result.outcome is Outcome.DONE else 0
        facts["instead"] = list(dict.fromkeys(o.instance_type for o in step.otherwise.offerings)) if step.otherwise else []
    if isinstance(step, Launch):
        facts |= {"market": str(step.market), "usd_per_hour": step.offerings[0].billed_usd_per_hour}  # of one agent
        facts["launched"] = result.count if result.outcome is Outcome.DONE else 0
    if isinstance(step, FinishStop) and step.failed:
        facts["failed"] = step.failed
    if result.detail:
        facts["result"] = shortened(result.detail, LONGEST_RESULT)
    return facts


# Counts of what passes did: the metrics of a scaling function.


def counts_of(reports: Sequence[Report]) -> dict[str, int]:
    """Count what passes did, each under the name of its metric."""
    results = [result for report in reports for result in report.results]
    held = {(h.controller, h.pool, h.reason) for report in reports for h in report.plan.held}
    placed = Counter(name for report in reports for name, _ in _places(report))
    return {
        "Launches": done(results, Launch),
        "Starts": done(results, Start),
        "Rotations": done(results, Rotate),
        "StartsFailed": sum(sum(starts_failed(report).values()) for report in reports),
        "Stops": done(results, Stop),
        "LaunchesHeld": sum(reason in _HOLDS_LAUNCHES for _, _, reason in held),
        "Terminations": done(results, Terminate),
        "BootFailures": placed["BootFailures"],
        "Quarantines": placed["Quarantines"],
        "Ec2Disagrees": any(reason is Reason.EC2_DISAGREES for _, _, reason in held),
        "SweepsStopped": sum(reason is Reason.SWEEP_LIMIT for _, _, reason in held),
        "BuildsRunAgain": done(results, RunAgain),
        "BuildsLeft": placed["BuildsLeft"],
        "LeaseHeld": 0,
    }


_HOLDS_LAUNCHES = {
    Reason.HELD,
    Reason.FROZEN,
    Reason.MAX_AGENTS,
    Reason.TEAM_MAX_AGENTS,
    Reason.FLEET_MAX_AGENTS,
    Reason.LAUNCH_RATE,
    Reason.USD_PER_HOUR,
    Reason.USD_PER_MONTH,
    Reason.NOT_ITS_TURN,
    Reason.NO_OFFERING,
    Reason.POOL_PAUSED,
    Reason.ACCOUNT_THROTTLED,
    Reason.BREAKER_OPEN,
    Reason.ONE_TRIAL,
    Reason.CANARY,
}


# Leaves a note of what a pass counted, for the look that measures. A note that fails fails no pass.


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
            if notes is None:
                return
            with suppress(ConflictError):
                ports.state.save_pass_notes(function, notes)
                return
    except AutoscalerError as error:
        ports.log("pass_not_noted", function=function, error=f"{type(error).__name__}: {error}")
    else:
        ports.log("pass_not_noted", function=function, error="other invocations were faster")


def places_of_reports(reports: Iterable[Report]) -> dict[str, list[str]]:
    """Where passes counted what, by the names of the counts."""
    return grouped(place for report in reports for place in _places(report))


def _places(report: Report) -> Iterator[tuple[str, str]]:
    for failure in report.plan.boot_failures:
        if not failure.of_start:
            yield "BootFailures", f"pool {failure.pool} ({failure.instance_id})"
    yield from (("StartsFailed", f"pool {pool}") for pool in starts_failed(report))
    for held in report.plan.held:
        if held.reason in _HOLDS:
            yield _HOLDS[held.reason], f"pool {held.pool} of {held.controller}" if held.pool else held.detail
    for result in report.results:
        match result:
            case Result(outcome=Outcome.DONE, step=Cordon(pool=pool, node=node, mark=mark, reason=why)) if (
                # It was counted when its labels were taken.
                mark.kind is MarkClass.QUARANTINE and why is not Reason.LABELS_TAKEN
            ):
                yield "Quarantines", f"{node} of pool {pool}"
            # Nobody need see to a build that a person has started again.
            case Result(outcome=Outcome.DONE, step=LeaveLost(pool=pool, job=job, reason=why)) if why is not Reason.REPEATED_BY_PERSON:
                yield "BuildsLeft", f"{job} in pool {pool}"


# Keeps the fleet's history: the steps of each pass with their reasons, which no pass reads.


def note(ports: Ports, events: Sequence[Event]) -> bool:
    """Add events to the history, and say whether that worked. A failure is logged, and changes nothing of what was done."""
    return ports.is_done(partial(ports.history.note, events), "events_not_noted", count=len(events))


# Notes each step of a pass when it is done, so that a pass that is cut off later leaves what it did in the log and in the history.


_EVENTS = (Outcome.DONE, Outcome.FAILED)


@dataclass(slots=True)
class StepNotes:
    """The notes of one pass. ``by``: the function or person that runs it."""

    ports: Ports
    plan: Plan
    by: str
    results: list[Result] = field(default_factory=list)
    _unsent: list[Event] = field(default_factory=list)
    _has_failed: bool = False

    def note(self, result: Result) -> None:
        """Keep and log a step and its outcome; add it to the history if it was taken or failed."""
        self.results.append(result)
        self.ports.log("step", pass_id=self.plan.pass_id, **step_json(result))
        if result.outcome not in _EVENTS:
            return
        step = result.step
        subject = step.node or step.instance_id or str(getattr(step, "job", ""))
        self._unsent.append(
            Event(
                at=self.ports.clock(),
                by=self.by,
                what=step.name,
                where="/".join(filter(None, (step.controller, step.pool))),
                subject=f"{result.count} of {step.count}" if isinstance(step, Launch | Start) else subject,
                reason=str(step.reason),
                detail=shortened("; ".join(filter(None, (step.detail, result.detail))), LONGEST_RESULT),
                outcome=str(result.outcome),
            )
        )
        # A table that does not answer costs the pass one wait, and not one for each step.
        if not self._has_failed:
            self.send()

    def send(self) -> None:
        """Add what is not added yet to the history."""
        if self._unsent:
            self._has_failed = not note(self.ports, self._unsent)
        if not self._has_failed:
            self._unsent = []
