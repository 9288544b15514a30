"""What was recorded is decided again. `make corpus` prints what differs; RECORD=1 records it, in a
commit that says why."""

import pytest

from corpus.case import archives, case_forms, lines_of, read, written
from corpus.compare import PLAN, compare, differences
from corpus.neutral import without_detail

_PARTS = 6


@pytest.mark.parametrize("part", range(_PARTS))
@pytest.mark.parametrize("archive", archives(), ids=lambda archive: archive.stem)
def test_each_recorded_decision_is_made_again(archive, part):
    assert compare(archive, part, _PARTS) == []


@pytest.mark.parametrize("archive", archives(), ids=lambda archive: archive.stem)
def test_a_case_is_written_as_it_was_read(archive):
    forms = case_forms()
    for line in lines_of(archive)[::20]:
        assert written(read(line, forms), forms) == line


def test_a_decision_that_is_made_otherwise_is_told_with_its_look_and_its_lines():
    recorded = read(lines_of(archives()[0])[0], case_forms())
    look = next(number for number, lines in enumerate(recorded.decided) if lines)
    line = recorded.decided[look][0]
    recorded.decided[look] = recorded.decided[look][1:]
    [difference] = differences(recorded)
    assert (difference.kind, difference.look) == (PLAN, look)
    assert difference.lines == (f"+{without_detail(line)}",)
