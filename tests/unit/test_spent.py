"""CPU seconds by folder are told beside their budget, and a folder that exceeds it by half fails CI."""

from collections import Counter
from types import SimpleNamespace

import pytest

from support.spent import TESTS, Spent, budget, over, told

ALLOWED = {"unit": 40.0, "handlers": 80.0}


def test_a_folder_may_exceed_its_budget_by_half_and_one_without_a_budget_by_nothing():
    assert over(Counter(unit=60.0, handlers=10.0), ALLOWED) == []
    assert over(Counter(unit=60.1, handlers=10.0, new=0.1), ALLOWED) == ["unit", "new"]


def test_the_folders_are_told_the_dearest_first_and_those_that_exceed_are_named():
    assert told(Counter(unit=30.0, handlers=150.0), ALLOWED) == [
        "CPU seconds: 180",
        "  handlers        150 of   80  TOO MUCH: tests/budget.json",
        "  unit             30 of   40",
    ]


def test_a_short_run_tells_nothing():
    assert told(Counter(unit=59.0), ALLOWED) == []


@pytest.mark.parametrize(("ci", "status"), [("true", 1), ("", 0)])
def test_in_ci_a_folder_that_exceeds_its_budget_fails_the_run(monkeypatch, ci, status):
    monkeypatch.setenv("CI", ci)
    spent = Spent()
    spent.pytest_testnodedown(SimpleNamespace(workeroutput={"spent": {"unit": 10_000.0}}))
    session, lines = SimpleNamespace(exitstatus=0), []
    spent.pytest_terminal_summary(SimpleNamespace(write_line=lines.append, _session=session))
    assert (session.exitstatus, lines[0]) == (status, "CPU seconds: 10000")


def test_each_folder_of_tests_has_a_budget():
    folders = {path.parent.name for path in TESTS.glob("*/test_*.py")}
    assert folders <= budget().keys()
