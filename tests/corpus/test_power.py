"""What `python -m corpus.power` says of bugs, each of them planted in a process of its own."""

import pytest

from corpus import power
from corpus.case import RECORDED, lines_of, read, written
from corpus.missed import shortened
from planted.bug import Bug
from planted.test_planted import BUGS

_FEW = 10  # cases
_WAS = "    if not agent.phase.is_out_of_use:\n        return False\n"


def a_bug(becomes: str) -> Bug:
    return Bug(name=becomes, function="may_come_back", was=_WAS, becomes=becomes, found_by=())


def test_each_bug_has_a_verdict_and_one_that_never_ends_is_noticed(monkeypatch):
    monkeypatch.setattr(power, "_MOST_CPU_SECONDS", 1)
    becomes = {
        "    while True:\n        pass\n": "goes on for ever",
        "    raise KeyError(agent)\n": "raises",
        "    return True\n": "decides otherwise",
        "    if not agent.phase.is_out_of_use:\n        return not True\n": "",
    }
    lines = lines_of(RECORDED / "bugs.xz")[:_FEW]
    verdicts = dict(power.verdicts(lines, map(a_bug, becomes)))
    assert {bug.becomes: verdict.how for bug, verdict in verdicts.items()} == becomes
    assert all((verdict.case is None) == (not verdict.how) for verdict in verdicts.values())


def test_a_bug_that_cannot_be_planted_is_no_bug_that_is_noticed(capfd):
    with pytest.raises(power.NotPlayedError):
        list(power.verdicts(lines_of(RECORDED / "bugs.xz")[:_FEW], [a_bug("    if (\n")]))
    assert "SyntaxError" in capfd.readouterr().err


def test_the_case_that_notices_a_bug_is_cut_to_the_looks_that_it_needs():
    bug, lines = a_bug("    raise KeyError(agent)\n"), lines_of(RECORDED / "purpose.xz")
    noticed = next(one for one in map(read, lines) if power.verdict_among(bug, [written(one)]).how)
    cut = shortened(bug, noticed)
    assert 0 < len(cut.case.looks) < len(noticed.case.looks)
    assert power.verdict_among(bug, [written(cut)]).how == "raises"


def test_each_function_that_is_left_out_has_a_planted_bug():
    assert set(power._ELSEWHERE) <= {bug.function for bug in BUGS}
