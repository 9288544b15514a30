"""How much of the layer a fleet walks through: what each function enters in a pass, from the real handlers over HTTP."""

import ast
import os
import sys
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from autoscaler_workbench.cli import demo
from benchmarks.cold import start_cold, surroundings
from ratchet.statements import LAYER
from support.deployed import Deployed, deployed

PLAIN = Path(__file__).parent / "plain.yaml"
_ENDS = frozenset({"terminate", "stop"})
_IDLE_MINUTES = 240  # within which an idle agent of a plain fleet surely ends


@dataclass(frozen=True, slots=True)
class Walk:
    """What one invocation entered. ``functions``: without lambdas and comprehensions; ``statements``: those in functions."""

    modules: int
    functions: int
    statements: int


def walks(fleet_file: Path) -> dict[str, Walk]:
    """One build on one pool: it waits, it runs, it is over, and its agent ends."""
    taken: dict[str, Walk] = {}
    with deployed(fleet_file) as here:
        pool = next(iter(here.fleet.pools.values()))
        here.pass_minutes(2)
        taken["scale_up, idle"], _ = _next_minute(here, "scale_up")
        here.world.controllers[pool.controllers[0]].submit("job", next(iter(pool.labels)), 600.0)
        here.world.move_to(here.world.timeline.now + 120.0)
        taken["scale_up, launches"], steps = _next_minute(here, "scale_up")
        if "launch" not in steps:
            raise AssertionError(f"the pass launches nothing: {steps}")
        here.pass_minutes(5)
        taken["publish_metrics, a build runs"], _ = _next_minute(here, "publish_metrics")
        taken["scale_down, a build runs"], _ = _next_minute(here, "scale_down")
        taken["scale_down, ends the agent"] = _until_ended(here)
    return taken


def _next_minute(here: Deployed, function: str) -> tuple[Walk, list[str]]:
    here.world.move_to(here.world.timeline.now + 60.0)
    return traced(here, function)


def _until_ended(here: Deployed) -> Walk:
    """Let scale_down alone look each minute: nobody waits meanwhile, and the other functions take most of the time."""
    for _ in range(_IDLE_MINUTES):
        here.world.move_to(here.world.timeline.now + 60.0)
        walk, steps = traced(here, "scale_down")
        if not _ENDS.isdisjoint(steps):
            return walk
    raise AssertionError(f"no agent was terminated or stopped within {_IDLE_MINUTES} min")


def traced(here: Deployed, function: str) -> tuple[Walk, list[str]]:
    """Invoke a function and return what it entered, and its steps."""
    lines: dict[CodeType, set[int]] = defaultdict(set)
    sys.settrace(_noting(lines))
    try:
        answer = here.call(function, {})
    finally:
        sys.settrace(None)
    functions = {code for code in lines if not any(part.startswith("<") and part != "<locals>" for part in code.co_qualname.split("."))}
    by_module: dict[str, set[int]] = defaultdict(set)
    for code, entered in lines.items():
        by_module[code.co_filename] |= entered
    statements = sum(len({*_statements_at(file, entered)}) for file, entered in by_module.items())
    return Walk(len({code.co_filename for code in functions}), len(functions), statements), _steps_of(answer)


def _steps_of(answer: Mapping[str, Any]) -> list[str]:
    return [step["step"] for step in answer.get("steps", ())]


def _noting(lines: dict[CodeType, set[int]]) -> Callable[[FrameType, str, Any], Any]:
    def note(frame: FrameType, event: str, _arg: Any) -> Any:
        if not frame.f_code.co_filename.startswith(str(LAYER)):
            return None
        entered = lines[frame.f_code]
        if event == "line":
            entered.add(frame.f_lineno)
        return note

    return note


def _statements_at(file: str, lines: set[int]) -> Iterator[int]:
    """First lines of the statements that these lines belong to."""
    begins = _first_lines(file)
    for line in lines:
        yield begins[bisect_right(begins, line) - 1]


@cache
def _first_lines(file: str) -> list[int]:
    """Where statements of functions begin, in order. What is no part of a function is read once, at import."""
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.Lambda)]
    return sorted({0} | {node.lineno for function in functions for node in ast.walk(function) if isinstance(node, ast.stmt)})


def loaded(fleet_file: Path) -> tuple[int, int]:
    """How many modules of the layer an import of scale_up loads, and how many are loaded after a pass."""
    with surroundings(fleet_file) as environment:
        paths = os.pathsep.join((str(demo.FUNCTIONS / "scale_up"), str(LAYER.parent)))
        counts = start_cold("{}", environment | {"PYTHONPATH": paths, "FLEET_CONFIG": str(fleet_file)})["loaded"]
    imported, after = (int(count) for count in counts)
    return imported, after
