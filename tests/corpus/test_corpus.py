"""What was recorded is decided again. `make corpus` prints what differs; RECORD=1 records it, in a
commit that says why."""

import pytest

from corpus.case import Asks, archives, lines_of, read, written
from corpus.compare import PLAN, compare, differences
from corpus.harvest import Harvest, series, ticks
from corpus.neutral import lines_of as lines_of_plan
from corpus.neutral import without_detail
from corpus.play import play
from support.hostile.life import Life

_PARTS = 6


@pytest.mark.parametrize("part", range(_PARTS))
@pytest.mark.parametrize("archive", archives(), ids=lambda archive: archive.stem)
def test_each_recorded_decision_is_made_again(archive, part):
    assert compare(archive, part, _PARTS) == []


@pytest.mark.parametrize("archive", archives(), ids=lambda archive: archive.stem)
def test_a_case_is_written_as_it_was_read(archive):
    for line in lines_of(archive)[::20]:
        assert written(read(line)) == line


def test_a_decision_that_is_made_otherwise_is_told_with_its_look_and_its_lines():
    recorded = next(one for one in map(read, lines_of(archives()[0])) if any(one.decided))
    look = next(number for number, lines in enumerate(recorded.decided) if lines)
    line = recorded.decided[look][0]
    recorded.decided[look] = recorded.decided[look][1:]
    [difference] = differences(recorded)
    assert (difference.kind, difference.look) == (PLAN, look)
    assert difference.lines == (f"+{without_detail(line)}",)


def test_what_is_taken_down_of_a_life_is_decided_again_from_its_facts_alone(monkeypatch):
    """The memory is carried on as the passes have carried it."""
    harvest = Harvest()
    with monkeypatch.context() as patches:
        harvest.install(patches.setattr)
        Life(1, ()).live()
    minutes = ticks(harvest.take())
    decided = [look for minute in minutes for look in minute if look.plan is not None]
    case = series("a life", minutes)
    plans = [
        lines
        for look, lines in zip(case.looks, play(case), strict=True)
        if look.asks is not Asks.LEARN
    ]
    carried_out = [
        (lines, lines_of_plan(look.plan))
        for look, lines in zip(decided, plans, strict=True)
        if look.look.outcomes is not None
    ]
    assert len(carried_out) > 100
    assert [pair for pair in carried_out if pair[0] != pair[1]] == []
