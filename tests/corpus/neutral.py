"""Plans as lines of words that stay when a class or a field of the code is given another name."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from hashlib import blake2b
from typing import Any

from autoscaler.domain.facts import plan
from autoscaler.domain.facts.fleet import Offering
from autoscaler.domain.facts.nodes import Mark
from autoscaler.domain.facts.plan import BootFailure, Plan
from autoscaler.domain.facts.runs import BuildResult

KINDS: dict[type, str] = {
    plan.Adopt: "adopt",
    plan.CancelItem: "cancel-item",
    plan.Cordon: "cordon",
    plan.CreateBeacon: "create-beacon",
    plan.DeleteNode: "delete-node",
    plan.FinishRotation: "finish-rotation",
    plan.FinishStop: "finish-stop",
    plan.Forget: "forget",
    plan.FreeSlot: "free-slot",
    plan.Launch: "launch",
    plan.LeaveLost: "leave-lost",
    plan.Lend: "lend",
    plan.Relabel: "relabel",
    plan.RemoveBeacon: "remove-beacon",
    plan.Rotate: "rotate",
    plan.RunAgain: "run-again",
    plan.Start: "start",
    plan.Stop: "stop",
    plan.TakeBack: "take-back",
    plan.Terminate: "terminate",
    plan.Uncordon: "uncordon",
    plan.ForceStop: "force-stop",
    plan.EndReservation: "end-reservation",
    plan.Reserve: "reserve",
    plan.ReserveDevice: "reserve-device",
}
# A field that the code has renamed since it was recorded: its name now, and the one in the lines.
FIELDS: dict[str, str] = {}
_DETAIL = re.compile(" #[0-9a-f]{6}")
_FIRST = ("controller", "pool", "node", "instance_id", "reason")


def lines_of(decided: Plan) -> list[str]:
    """A line for each step, for what was held back, and for each boot that failed, in the order of
    the plan."""
    return [
        *(f"{KINDS[type(step)]} {_facts(step)}" for step in decided.steps),
        *(f"held {_facts(held)}" for held in decided.held),
        *(f"boot-failed {_of_boot(failure)}" for failure in decided.boot_failures),
    ]


def lines_of_questions(controller: str, **asked: Iterable[Any]) -> Iterator[str]:
    """A line for each kind of question that a measurement asks."""
    for kind, about in asked.items():
        if names := " ".join(map(str, about)):
            yield f"asks {controller} {kind} {names}"


def lines_of_lesson(controller: str, lesson: Any) -> Iterator[str]:
    """A line for each thing that a measurement tells: how long builds had waited, how they ended,
    and on which agents."""
    for pool, waits in lesson.job_waits.items():
        yield f"waited {controller} {pool} {' '.join(f'{seconds:.0f}' for seconds in waits)}"
    for pool, tally in lesson.tallies.items():
        yield (
            f"ended {controller} {pool} succeeded={tally[BuildResult.SUCCEEDED]} "
            f"failed={tally[BuildResult.FAILED]}"
        )
    for build in lesson.unseen:
        yield f"unseen {controller} {build.pool} {build.node} {build.run} {_text(build.result)}"
    for block, end in lesson.blocks:
        yield f"block {controller} {block.pool} {block.node} {block.run} {_text(end)}"


def without_detail(line: str) -> str:
    """A line without the digests of its details."""
    return _DETAIL.sub("", line)


def _facts(step: Any) -> str:
    first = " ".join(str(getattr(step, name, None) or "-") for name in _FIRST)
    return " ".join([first, *_more(step), f"#{_digest(step.detail)}"])


def _more(step: Any) -> Iterator[str]:
    for of in fields(step):
        value = getattr(step, of.name)
        if of.name not in (*_FIRST, "detail") and value != _default(of):
            yield f"{FIELDS.get(of.name, of.name)}={_text(value)}"


def _of_boot(failure: BootFailure) -> str:
    return " ".join([f"{failure.controller} {failure.pool} {failure.instance_id}", *_more(failure)])


def _default(of: Any) -> Any:
    return of.default if of.default is not MISSING else None


def _text(value: Any) -> str:
    match value:
        case Mark() | Offering() | Enum():
            return (
                value.text
                if isinstance(value, Mark)
                else value.key
                if isinstance(value, Offering)
                else str(value.value)
            )
        case tuple():
            return f"[{','.join(map(_text, value))}]"
        case dict():
            return f"{{{','.join(f'{key}:{_text(one)}' for key, one in value.items())}}}"
        case _ if type(value) in KINDS:
            return f"({KINDS[type(value)]} {_facts(value)})"
        case _ if is_dataclass(value):
            return f"({' '.join(_more(value))})"
        case float():
            return f"{value:.6g}" if abs(value) < 1e6 else f"{value:.3f}"
        case _:
            return str(value)


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=3).hexdigest()


def reasons_of(lines: list[str]) -> set[tuple[str, str]]:
    """The pairs of step and reason among these lines."""
    words = [line.split(" ") for line in lines if not line.startswith("boot-failed")]
    return {(word[0], word[len(_FIRST)]) for word in words}
