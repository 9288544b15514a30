"""``pytest -p corpus.seek TEST...``: take the decisions of each test that take branches without a
case. ``python -m corpus.fill`` says which branches these are, and adds the cases."""

import os
from collections.abc import Sequence

import pytest

from corpus.branches import Arc, arcs_of
from corpus.candidates import FOLDER
from corpus.case import Case, Recorded, written
from corpus.fill import missed_branches
from corpus.harvest import Harvest, RawLook, series, ticks
from corpus.play import play

_BEFORE = 12  # ticks before the one that takes a branch
_HARVEST = Harvest()
_HARVEST.install()
_MISSED = missed_branches()
_FILE = FOLDER / f"branches-{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}.jsonl"


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item):
    taken = _HARVEST.take()
    minutes = ticks(taken)
    looks = [look for look in taken if look.plan is not None]
    while number := _first(looks):
        look, looks = looks[number - 1], looks[number:]
        alone = look.alone(item.nodeid)
        for case in (*_in_a_row(item.nodeid, look, minutes), alone):
            if _new(case):
                _MISSED.difference_update(_new(case))
                with _FILE.open("a", encoding="utf-8") as file:
                    file.write(f"{written(Recorded(case=case))}\n")
                break
    _HARVEST.take()  # what was played here


def _in_a_row(name: str, look: RawLook, minutes: Sequence[list[RawLook]]) -> list[Case]:
    same = (number for number, minute in enumerate(minutes) if any(one is look for one in minute))
    at = next(same, 0)
    first = max(0, at - _BEFORE)
    return [series(f"{name} from minute {first}", [*minutes[first : at + 1]])] if at else []


def _first(looks: Sequence[RawLook]) -> int:
    """How many of them it takes for a branch without a case; 0 if all do not."""
    if not looks or not _new(*(look.alone("") for look in looks)):
        return 0
    without, enough = 0, len(looks)
    while enough - without > 1:
        half = (without + enough) // 2
        is_enough = _new(*(look.alone("") for look in looks[without:half]))
        without, enough = (without, half) if is_enough else (half, enough)
    return enough


def _new(*cases: Case) -> set[Arc]:
    return _MISSED & arcs_of(lambda: [list(play(case)) for case in cases])
