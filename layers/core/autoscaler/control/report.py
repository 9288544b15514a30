"""Reports what became of a plan: one line a step, with decision and result."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from autoscaler.domain.facts.plan import (
    Adopt,
    BootFailure,
    CancelItem,
    Cordon,
    CreateBeacon,
    DeleteNode,
    EndReservation,
    FinishRotation,
    FinishStop,
    ForceStop,
    Forget,
    FreeSlot,
    Held,
    Launch,
    LeaveLost,
    Lend,
    Plan,
    Relabel,
    RemoveBeacon,
    Reserve,
    ReserveDevice,
    Rotate,
    RunAgain,
    Start,
    Step,
    Stop,
    TakeBack,
    Terminate,
    Uncordon,
)
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.wording import LONGEST_DETAIL, LONGEST_RESULT, shortened

STEP_NAMES: dict[type[Step], str] = {
    CreateBeacon: "create-beacon",
    RemoveBeacon: "remove-beacon",
    Launch: "launch",
    Uncordon: "uncordon",
    Cordon: "cordon",
    Relabel: "relabel",
    Lend: "lend",
    TakeBack: "take-back",
    Reserve: "reserve",
    ReserveDevice: "reserve-device",
    EndReservation: "end-reservation",
    Terminate: "terminate",
    Stop: "stop",
    ForceStop: "force-stop",
    FinishStop: "finish-stop",
    Start: "start",
    Rotate: "rotate",
    FinishRotation: "finish-rotation",
    DeleteNode: "delete-node",
    FreeSlot: "free-slot",
    Adopt: "adopt",
    Forget: "forget",
    CancelItem: "cancel-item",
    RunAgain: "run-again",
    LeaveLost: "leave-lost",
}


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


def boots_failed(report: Report) -> list[BootFailure]:
    """List the first boots that failed."""
    return [failure for failure in report.plan.boot_failures if not failure.of_start]


def as_json(report: Report) -> dict[str, Any]:
    """Write a pass as the JSON that functions answer and log."""
    return {
        "pass_id": report.plan.pass_id,
        "taken_at": datetime.fromtimestamp(report.plan.taken_at, UTC).isoformat(),
        "dry_run": report.dry_run,
        "steps": [step_json(result) for result in report.results],
        "held": [_held_json(held) for held in report.plan.held],
    }


def merged_json(reports: Iterable[Report]) -> dict[str, Any]:
    """Write several passes of one invocation as one plan, with the time of the last."""
    parts = [as_json(report) for report in reports]
    held = {(h["pool"], h["reason"], h["detail"]): h for part in parts for h in part["held"]}
    return parts[-1] | {"steps": [step for part in parts for step in part["steps"]], "held": list(held.values())}


def step_json(result: Result) -> dict[str, Any]:
    """Write a step and its outcome, likewise."""
    step = result.step
    facts: dict[str, Any] = {"step": STEP_NAMES[type(step)], "controller": step.controller}
    for name in ("pool", "count", "node", "instance_id", "item", "job"):
        if getattr(step, name, None) is not None:
            facts[name] = getattr(step, name)
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


def _held_json(held: Held) -> dict[str, Any]:
    facts = {"controller": held.controller, "pool": held.pool, "reason": str(held.reason), "detail": held.detail}
    return facts | ({"limit_of": held.limit_of} if held.limit_of else {})
