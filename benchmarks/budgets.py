"""Figures of a pass that are the same on every machine: calls of our own functions, requests and bytes, modules imported, peak memory.

`tests/packaging/test_budgets.py` holds each to its entry in ``budgets.json``. ``python -m benchmarks.budgets`` prints them beside the
entries; ``--write`` writes them down, and the commit says why what was raised is worth it.
"""

import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks.canned import Cans, open_cans, passes_of
from benchmarks.crowd import gather
from benchmarks.size import canned

ROOT = Path(__file__).parents[1]
ENTRIES = ROOT / "benchmarks" / "budgets.json"
# A pass over so many agents has all that one of thousands has, and takes a twentieth of a second.
AGENTS = 150
FUNCTIONS = ("operate", "register_agent", "scale_up", "webhook")  # the others import what one of these does
_OURS = str(ROOT / "layers" / "core" / "autoscaler")
_COUNT_MODULES = "import sys, app; print(sum(name.partition('.')[0] == 'autoscaler' for name in sys.modules))"


def figures() -> dict[str, dict[str, int]]:
    """Measure all, by kind and function."""
    cans = canned(gather(AGENTS))
    ports = open_cans(cans)
    passes = passes_of(ports, cans.fleet)
    for act in passes.values():
        act()  # what is imported late and worked out once for a process
    return {
        "calls": {name: calls_of(act) for name, act in passes.items()},
        "kilobytes of memory": {name: _peak_kilobytes(act) for name, act in passes.items()},
        "a look": _look(cans),
        "modules of ours": {name: _modules_of(ROOT / "functions" / name) for name in FUNCTIONS},
    }


def calls_of(act: Callable[[], object]) -> int:
    """Count the calls of our own functions. Comprehensions are none: some releases of Python call them, and some do not."""
    called = 0

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal called
        if event == "call" and frame.f_code.co_name[0] != "<" and frame.f_code.co_filename.startswith(_OURS):
            called += 1

    with _profiled(note):
        act()
    return called


def lines_of(act: Callable[[], object]) -> int:
    """Count the lines of ours that run, each turn of a loop or a comprehension anew: what is done, however few calls there are."""
    ran = 0

    def in_ours(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal ran
        ran += event == "line"
        return in_ours

    def note(frame: FrameType, _event: str, _argument: Any) -> Any:
        return in_ours if frame.f_code.co_filename.startswith(_OURS) else None

    before = sys.gettrace()
    sys.settrace(note)
    try:
        act()
    finally:
        sys.settrace(before)
    return ran


@contextmanager
def _profiled(note: Callable[[FrameType, str, Any], None]) -> Iterator[None]:
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)


def _peak_kilobytes(act: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        act()
        return tracemalloc.get_traced_memory()[1] // 1000
    finally:
        tracemalloc.stop()


def _look(cans: Cans) -> dict[str, int]:
    """Count what one look asks Jenkins for, and what comes back before it is unpacked."""
    return {"requests": len(cans.answers), "kilobytes unpacked": sum(len(answer.body) for answer in cans.answers.values()) // 1000}


def _modules_of(function: Path) -> int:
    """Count the modules of ours that a function imports at its cold start."""
    paths = f"{function}:{ROOT / 'layers' / 'core'}"
    command = [sys.executable, "-c", _COUNT_MODULES]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={"PYTHONPATH": paths, "POWERTOOLS_SERVICE_NAME": "f"})
    return int(done.stdout)


def main() -> None:
    """Print what is measured beside what is entered, or enter it."""
    measured = figures()
    if "--write" in sys.argv[1:]:
        ENTRIES.write_text(json.dumps(measured, indent=2) + "\n", encoding="utf-8")
    entered = json.loads(ENTRIES.read_text(encoding="utf-8"))
    for kind, by_name in measured.items():
        for name, figure in by_name.items():
            print(f"{kind:<22} {name:<18} {figure:>10,}  entered {entered[kind].get(name, 0):>10,}")  # noqa: T201


if __name__ == "__main__":
    main()
