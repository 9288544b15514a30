"""What a run's own page says about whether it has ended."""

import json
from pathlib import Path

import pytest

from autoscaler.adapters.jenkins.flow_graph import read_whether_ended
from autoscaler.domain.facts.runs import RunAnswer
from autoscaler.errors import TransientError

RECORDINGS = Path(__file__).parents[1] / "recordings"
INPUT = {
    "nodes": [{"displayName": "Allocate node : Start", "running": True}, {"displayName": "Wait for interactive input", "running": True}]
}
ANSWERED = {"nodes": [{"displayName": "Wait for interactive input", "running": False}, {"displayName": "Shell Script", "running": True}]}


@pytest.mark.parametrize(
    ("page", "answer"),
    [
        ({"building": True, "inProgress": True}, RunAnswer.RUNS),
        ({"building": False, "inProgress": True}, RunAnswer.RUNS),  # it is finalized
        ({"building": False, "inProgress": False}, RunAnswer.ENDED),
        ({"building": False}, RunAnswer.MAY_HAVE_ENDED),
        ({"building": True}, RunAnswer.RUNS),
        ({"building": True, "inProgress": True, "actions": [{}, INPUT]}, RunAnswer.WAITS_FOR_INPUT),
        ({"building": True, "inProgress": True, "actions": [{}, ANSWERED, None, {"nodes": None}]}, RunAnswer.RUNS),
        ({"building": False, "inProgress": False, "actions": [INPUT]}, RunAnswer.ENDED),
    ],
)
def test_a_page_says(page, answer):
    assert read_whether_ended(page) is answer


@pytest.mark.parametrize(
    ("name", "answer"), [("d06_build_running_freestyle", RunAnswer.RUNS), ("d07_build_completed_freestyle", RunAnswer.ENDED)]
)
def test_recorded_pages_say(name, answer):
    assert read_whether_ended(json.loads((RECORDINGS / f"{name}.json").read_text(encoding="utf-8"))["body"]) is answer


@pytest.mark.parametrize("page", [None, [], {}, {"building": "perhaps"}])
def test_what_is_not_understood_is_no_answer(page):
    with pytest.raises(TransientError):
        read_whether_ended(page)
