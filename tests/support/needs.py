"""Tests that need a tool beyond Python packages are skipped if it is missing, and the summary says so: one line a tool.

A pytest plugin. The marker ``needs("root", "curl")`` names entries of ``support/tools.py``. ``--python-only`` (`make test`) leaves out
all of these tests and the folder ``tests/environment``, which is not even read; `make test-all` runs them. With ``CI=true`` a skip fails
the run.
"""

import os
import tempfile
from collections import Counter
from collections.abc import Collection
from pathlib import Path

import pytest

from support.live_scene import ON_LIVE_JENKINS
from support.sampling import leave_out
from support.tools import TOOLS, make_path_bare, missing

ENVIRONMENT = Path(__file__).parents[1] / "environment"
_NEEDS = "needs "


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--python-only", action="store_true", help="only what Python packages alone can run, with a path of basic programs")


class Needs:
    """Skips or leaves out, counts, and reports."""

    def __init__(self) -> None:
        self.left = 0

    def pytest_configure(self, config: pytest.Config) -> None:
        config.addinivalue_line("markers", "needs(*tools): skipped unless these entries of support/tools.py are there")
        if config.getoption("--python-only") and not hasattr(config, "workerinput"):
            self.folder = tempfile.TemporaryDirectory(prefix="autoscaler-path-")
            make_path_bare(Path(self.folder.name))

    def pytest_ignore_collect(self, collection_path: Path, config: pytest.Config) -> bool | None:
        return True if collection_path == ENVIRONMENT and config.getoption("--python-only") else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        without, wanted = config.getoption("--python-only"), {item: tools_of(item) for item in items}
        # Only what is wanted is looked for: to find other Pythons, processes are started.
        lacking = {name for name in set().union(*wanted.values()) & TOOLS.keys() if not TOOLS[name].present}
        left = []
        for item, tools in wanted.items():
            unknown = tools - TOOLS.keys()
            assert not unknown, f"{item.nodeid}: support/tools.py has no {', '.join(unknown)}"
            if tools & lacking:
                item.add_marker(pytest.mark.skip(reason=_NEEDS + ", ".join(sorted(tools & lacking))))
            elif without and tools:
                left.append(item)
        leave_out(config, items, set(left))
        self.left = len(left)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["left"] = self.left

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node) -> None:
        self.left = max(self.left, getattr(node, "workeroutput", {}).get("left", 0))

    @pytest.hookimpl(tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter) -> None:
        skipped = [report.longrepr[2].removeprefix("Skipped: ") for report in terminalreporter.stats.get("skipped", [])]
        without = terminalreporter.config.getoption("--python-only")
        for line in told(skipped, self.left, missing() if without else {}):
            terminalreporter.write_line(line)
        if os.environ.get("CI") == "true" and (bad := not_allowed(skipped)):
            terminalreporter.write_line(f"CI=true: {len(bad)} tests were skipped, which is a failure")
            terminalreporter._session.exitstatus = pytest.ExitCode.TESTS_FAILED


def tools_of(item: pytest.Item) -> set[str]:
    return {name for mark in item.iter_markers("needs") for name in mark.args}


def told(skipped: list[str], left: int, lacking: Collection[str] = ()) -> list[str]:
    """Lines for people: one a missing tool, one a reason of another kind, one for what `make test-all` runs.

    ``lacking``: tools that are missing here, whether a test was skipped for one or not.
    """
    tools: Counter[str] = Counter()
    others: Counter[str] = Counter()
    for reason in skipped:
        if reason.startswith(_NEEDS):
            tools.update(reason.removeprefix(_NEEDS).split(", "))
        else:
            others[reason] += 1
    lines = [f"NOT TRIED: {TOOLS[name].tries} ({_tests(count)}): needs {name}; {TOOLS[name].remedy}" for name, count in tools.most_common()]
    lines += [f"NOT TRIED: {TOOLS[name].tries}: needs {name}; {TOOLS[name].remedy}" for name in lacking if name not in tools]
    lines += [f"NOT TRIED ({_tests(count)}): {reason}" for reason, count in others.most_common()]
    if left:
        lines.append(f"left to `make test-all`: tests/environment, and {_tests(left)} whose tools are all here")
    return lines


def _tests(count: int) -> str:
    return "1 test" if count == 1 else f"{count} tests"


def not_allowed(skipped: list[str]) -> list[str]:
    """Skips that CI does not forgive: all but other Pythons, cgroups, and what a live Jenkins cannot do."""
    return [reason for reason in skipped if not _forgiven(reason)]


def _forgiven(reason: str) -> bool:
    if reason.startswith(_NEEDS):
        return all(TOOLS[name].optional for name in reason.removeprefix(_NEEDS).split(", "))
    return reason.startswith(ON_LIVE_JENKINS)
