"""A test imports doors only, but for what `tests/inner_names.json` lists for its file."""

import pytest

from ratchet.doors import imported, inner_names, listed, missing


@pytest.fixture(scope="module")
def found():
    return imported()


def test_no_test_imports_a_name_of_an_inner_room_that_is_not_listed_for_its_file(found):
    """Take what a door gives instead: `DOORS` in `tests/ratchet/doors.py` has them all."""
    unlisted = missing(found, listed())
    assert not unlisted, "\n".join(unlisted)


def test_no_name_is_listed_that_its_file_imports_no_more(found):
    """`make walk RECORD=1` takes it off the list."""
    left = missing(listed(), found)
    assert not left, "\n".join(left)


@pytest.mark.parametrize(
    "text",
    [
        "from autoscaler.domain.decide import scale_up",
        "from autoscaler.domain import decide\ndecide.scale_up(snapshot, fleet)",
        "from autoscaler.domain.facts.snapshot import LOOK_GAP_SECONDS, Snapshot",
        "from autoscaler.config.load import load_fleet",
        "from autoscaler import bootstrap\npatch.object(bootstrap, 'Random')\nvars(bootstrap)",
        "from autoscaler.adapters.dynamodb import DynamoState",
        "import autoscaler",
        "MODULE = 'autoscaler.domain.learn'",
        "from autoscaler_workbench.simulate.day import Day",
    ],
)
def test_doors_are_open(text):
    assert inner_names(text) == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("from autoscaler.domain.launch.budget import Budget as Money", ["Budget"]),
        ("def test():\n    from autoscaler.domain.learn import assess", ["assess"]),
        (
            "from autoscaler.control import operate as people\npeople.why(people.Order)",
            ["Order", "why"],
        ),
        ("from autoscaler.control import passes\npatch.object(passes, 'observe')", ["observe"]),
        ("from autoscaler.control import passes\nplay(passes)", ["passes"]),
        ("import autoscaler.control.passes", ["passes"]),
        ("setattr('autoscaler.control.operate.purge', fails)", ["purge"]),
        ("from autoscaler.domain.facts.memory import Memory", ["Memory"]),
        ("from autoscaler.domain.facts.memory import Looks", ["Looks"]),
        ("from autoscaler.domain.facts.metering import meter", ["meter"]),
        ("from autoscaler.adapters.dynamodb import DynamoState, _Entry", ["_Entry"]),
    ],
)
def test_inner_rooms_are_closed(text, names):
    assert inner_names(text) == names
