"""A pass does not enter rules about what is not there. Entered all the same, they would decide
nothing."""

import pytest

from autoscaler.domain import decide
from corpus.case import archives, lines_of, read
from corpus.play import play


def vain(rule):
    """The rule, which must decide nothing."""

    def entered(situation, *about):
        decided = [*rule(situation, *about)]
        assert decided == [], rule.__name__
        return decided

    return entered


def enter_all(patch):
    """Let each pass enter all rules; count those that it would leave out."""
    of_use, left_out = decide._of_use, []

    def every(rules, situation):
        entered = of_use(rules, situation)
        left_out.extend(rule for rule in rules if rule not in entered)
        return [rule if rule in entered else vain(rule) for rule in rules]

    patch.setattr(decide, "_of_use", every)
    return left_out


@pytest.mark.parametrize("archive", archives(), ids=lambda archive: archive.stem)
def test_a_rule_that_is_left_out_would_decide_nothing(archive, monkeypatch):
    left_out = enter_all(monkeypatch)
    for line in lines_of(archive)[::3]:
        list(play(read(line).case))
    if archive.stem == "suite":  # which is large enough for each of them
        assert {*left_out} == {*decide.ONLY_WHERE}


def test_a_rule_that_would_decide_something_is_noticed(monkeypatch):
    monkeypatch.setitem(decide.ONLY_WHERE, decide.surplus, lambda _situation: False)
    enter_all(monkeypatch)
    [suite] = [archive for archive in archives() if archive.stem == "suite"]
    with pytest.raises(AssertionError, match="surplus"):
        for line in lines_of(suite):
            list(play(read(line).case))
