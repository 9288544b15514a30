"""Numbers as people read them."""

import pytest

from autoscaler.domain.wording import counted, dollars, dollars_apart, duration, durations_apart, figures_apart


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-1.0, "0 s"),
        (0.4, "0 s"),
        (119.4, "119 s"),
        (119.6, "2 min"),
        (200.0, "3 min 20 s"),
        (599.0, "9 min 59 s"),
        (629.0, "10 min"),
        (3569.0, "59 min"),
        (3571.0, "1 h"),
        (44_880.0, "12 h 28 min"),
        (172_790.0, "2 d"),
        (273_600.0, "3 d 4 h"),
    ],
)
def test_a_duration_has_the_units_that_matter(seconds, said):
    assert duration(seconds) == said


@pytest.mark.parametrize(
    ("usd", "said"),
    [
        (0.0, "$0.00"),
        (0.0013, "$0.0013"),
        (0.000012, "$0.000012"),
        (0.006, "$0.01"),
        (0.42, "$0.42"),
        (999.5, "$999.50"),
        (9940.0, "$9,940"),
        (12_345.6, "$12,346"),
    ],
)
def test_dollars_have_cents_where_cents_matter(usd, said):
    assert dollars(usd) == said


def test_a_count_has_its_noun():
    assert [counted(1, "job"), counted(2, "job"), counted(1200, "reply", "replies")] == ["1 job", "2 jobs", "1,200 replies"]


def test_two_amounts_that_are_compared_look_different_if_they_are():
    assert dollars_apart(148.584, 0.12) == ("$148.58", "$0.12")
    assert dollars_apart(0.1234, 0.1229) == ("$0.1234", "$0.1229")
    assert dollars_apart(1000.2, 1000.4) == ("$1,000.20", "$1,000.40")
    assert durations_apart(3600.0, 3590.0) == ("3,600 s", "3,590 s")
    assert durations_apart(86_401.0, 3600.0) == ("24 h", "1 h")
    assert figures_apart(20.0000001, 20.0) == ("20.0000001", "20")
    assert figures_apart(7, 6) == ("7", "6")
    assert dollars_apart(3.0, 3.0) == ("$3.00", "$3.00")
