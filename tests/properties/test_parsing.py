"""Whatever JSON comes instead of Jenkins': parsing sets aside what it does not understand, and never breaks."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.adapters.jenkins.parse import named_nodes, read_computers, read_queue, read_why
from autoscaler.domain.facts.snapshot import Wait
from autoscaler.errors import TransientError

HERE = Path(__file__).parents[1] / "recordings"
DATE = datetime(2026, 11, 20, 21, 0, tzinfo=UTC)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=12), inner, max_size=4)),
    max_leaves=12,
)
ITEMS = json.loads((HERE / "b04_queue_tree_task_all.json").read_text(encoding="utf-8"))["body"]["items"]
COMPUTERS = json.loads((HERE / "c03_computer_tree.json").read_text(encoding="utf-8"))["body"]["computer"]


@st.composite
def spoilt(draw, entries):
    """A recorded entry in which some fields hold something else, or are missing."""
    entry = json.loads(json.dumps(draw(st.sampled_from(entries))))
    for key in draw(st.lists(st.sampled_from(sorted(entry)), max_size=3, unique=True)):
        if draw(st.booleans()):
            entry[key] = draw(JSON)
        else:
            del entry[key]
    return entry


@given(st.lists(st.one_of(spoilt(ITEMS), JSON), max_size=5))
def test_every_queue_entry_is_read_or_set_aside(entries):
    items, aside = read_queue({"items": entries}, DATE, {"n-1"})
    assert len(items) == len(entries)
    assert len(aside) <= len(entries)


@given(st.lists(st.one_of(spoilt(COMPUTERS), JSON), max_size=5))
def test_every_node_is_read_or_set_aside(entries):
    nodes, aside = read_computers({"computer": entries}, DATE)
    assert len(nodes) <= len(entries)
    assert len(nodes) == len(entries) or aside


@given(st.integers() | st.sampled_from([10**18, 2**63, 10**300, -(10**18)]))
def test_executors_are_never_more_than_can_be_gone_through(number):
    [node], aside = read_computers({"computer": [COMPUTERS[0] | {"numExecutors": number}]}, DATE)
    assert 0 <= node.executors <= 1000
    assert node.executors == number or not 0 <= number <= 1000
    assert aside == {}


@given(JSON)
def test_a_body_of_another_form_is_an_answer_that_cannot_be_read(body):
    for key, read in (("items", lambda: read_queue(body, DATE, ())), ("computer", lambda: read_computers(body, DATE))):
        if not (isinstance(body, dict) and isinstance(body.get(key), list)):
            with pytest.raises(TransientError):
                read()


@given(st.text(max_size=80))
def test_any_why_is_read_or_unknown(why):
    assert isinstance(read_why(why), Wait | None)


@given(st.text(min_size=1, max_size=30).filter(lambda label: "’" not in label and "\n" not in label))
def test_a_label_in_curly_quotes_is_read_whole(label):
    assert read_why(f"There are no nodes with the label ‘{label}’").label == label
    assert read_why(f"All nodes of label ‘{label}’ are offline").label == label
    assert read_why(f"Waiting for next available executor on ‘{label}’").named == label


@given(st.sets(st.text("ab -ü(1)#+日.", min_size=1, max_size=8).filter(lambda name: name == name.strip()), max_size=5))
def test_nodes_of_any_name_are_found_in_a_text_that_is_not_known(names):
    """An item may wait for a node that a person named: one that is not found would be given up under it."""
    said = " and ".join(f"‘{name}’ is busy with another project" for name in sorted(names))
    assert set(named_nodes(said, names)) >= names


def test_a_node_is_named_by_its_whole_name_only():
    assert named_nodes("waiting for build host 12, then build host 1.", {"build host 1", "host", "host 1", "ost 1", "2"}) == (
        "build host 1",
        "host",
        "host 1",
    )
