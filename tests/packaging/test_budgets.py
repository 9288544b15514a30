"""What a pass does stays within its entry of ``benchmarks/budgets.json``: each figure is the same on every machine.

A raise is written down by ``python -m benchmarks.budgets --write``, and its commit says why it is worth that.
"""

import json

import pytest

from autoscaler.domain.launch.budget import Budget
from autoscaler.domain.launch.purchase import Purchase
from benchmarks import budgets
from benchmarks.canned import open_cans, passes_of
from benchmarks.crowd import gather
from benchmarks.size import canned

# A tenth more is a slow-down that somebody should have noticed. How much memory an object takes differs between releases of Python.
ALLOWED = {"kilobytes of memory": 1.25}
ENTERED = json.loads(budgets.ENTRIES.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def measured():
    return budgets.figures()


@pytest.mark.parametrize("kind", ENTERED)
def test_a_pass_does_no_more_than_is_entered(kind, measured):
    entered, allowed = ENTERED[kind], ALLOWED.get(kind, 1.1)
    assert measured[kind].keys() == entered.keys()
    assert {name: figure for name, figure in measured[kind].items() if figure > allowed * entered[name]} == {}


def test_the_entries_are_no_more_than_a_fifth_above_what_is_done(measured):
    """Where less is done, the entry is lowered, or the next slow-down stays unnoticed."""
    calls = measured["calls"]
    assert {name: figure for name, figure in calls.items() if figure < ENTERED["calls"][name] / 1.2} == {}


def test_a_planted_slow_down_is_found(monkeypatch):
    """Each item of a queue asks each limit anew, and tries to buy in vain, as it once did."""
    monkeypatch.setattr(Budget, "over_limit", Budget._ask_levels)
    monkeypatch.setattr(Purchase, "terms", lambda *_: object())
    cans = canned(gather(budgets.AGENTS))
    scale_up = passes_of(open_cans(cans), cans.fleet)["scale_up"]
    assert budgets.calls_of(scale_up) > 1.1 * ENTERED["calls"]["scale_up"]


def test_the_work_of_a_pass_grows_no_faster_than_the_fleet():
    """Calls do not show it: a list of all nodes for each item is one."""
    done = []
    for agents in (budgets.AGENTS, 4 * budgets.AGENTS):
        cans = canned(gather(agents))
        scale_down = passes_of(open_cans(cans), cans.fleet)["scale_down"]
        scale_down()
        done.append(budgets.lines_of(scale_down))
    assert done[1] < 4.1 * done[0]
