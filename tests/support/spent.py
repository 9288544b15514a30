"""What a run spent: CPU seconds by folder, its processes' children included, beside the budget of each folder.

A pytest plugin. Each worker adds up its own tests; the controller prints the sums. With ``CI=true`` a folder that exceeds its entry in
``tests/budget.json`` by half fails the run.
"""

import json
import os
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
BUDGET = TESTS / "budget.json"
COLLECTION = "collection"
# What a folder may take beyond its budget: machines are noisy.
_TOLERANCE = 1.5


def cpu_seconds() -> float:
    """CPU seconds of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Spent:
    """Adds up what each test spends."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item):
        began = cpu_seconds()
        try:
            return (yield)
        finally:
            self.seconds[folder_of(item)] += cpu_seconds() - began

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.items or hasattr(session.config, "workerinput"):
            self.seconds[COLLECTION] += cpu_seconds()

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["spent"] = dict(self.seconds)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node) -> None:
        self.seconds.update(getattr(node, "workeroutput", {}).get("spent", {}))

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter) -> None:
        for line in told(self.seconds, budget()):
            terminalreporter.write_line(line)
        if os.environ.get("CI") == "true" and over(self.seconds, budget()):
            terminalreporter._session.exitstatus = pytest.ExitCode.TESTS_FAILED


def folder_of(item: pytest.Item) -> str:
    return _folder_of(item.path)


@cache
def _folder_of(file: Path) -> str:
    return file.relative_to(TESTS).parts[0] if file.is_relative_to(TESTS) else "."


def budget() -> dict[str, float]:
    return json.loads(BUDGET.read_text(encoding="utf-8"))


def over(seconds: Counter[str], allowed: dict[str, float]) -> list[str]:
    """The folders that exceed their budget by half."""
    return [folder for folder, spent in seconds.items() if spent > _TOLERANCE * allowed.get(folder, 0.0)]


def told(seconds: Counter[str], allowed: dict[str, float]) -> list[str]:
    """Lines for people: CPU seconds by folder, the most first."""
    if sum(seconds.values()) < 60.0:
        return []
    exceeded = over(seconds, allowed)
    lines = [
        f"  {folder:12} {spent:6.0f} of {allowed.get(folder, 0.0):4.0f}{'  TOO MUCH: tests/budget.json' if folder in exceeded else ''}"
        for folder, spent in seconds.most_common()
    ]
    return [f"CPU seconds: {sum(seconds.values()):.0f}", *lines]
