"""Every fact that a function reads matters: two inputs that differ in it alone go through the doors, and what is seen differs.

The facts are listed from the dataclasses (`facts.py`). For each, `found.json` names a moment of a scene at which it matters, or
`reasons.py` says in one line why there is none. A new field has neither: ``python -m seams.search CLASS.FIELD`` looks for a moment.
"""

import json
import os
import re
import subprocess
import sys
from collections import defaultdict

import pytest

from seams.facts import facts, file_of
from seams.reasons import REASONS
from seams.scenes import scene_file
from seams.search import found
from support.forks import TESTS, paths
from support.sampling import ONE_IN, tried

_FOUND = found()
_BY_SCENE = defaultdict(dict)
for _fact, _moment in _FOUND.items():
    if _fact in facts() and tried(f"fact {_fact}", file_of(_fact), scene_file(_moment["scene"])):
        _BY_SCENE[_moment["scene"]][_fact] = _moment


def test_each_fact_has_a_moment_or_a_reason_and_nothing_else_has():
    assert not _FOUND.keys() & REASONS.keys()
    assert {*_FOUND, *REASONS} == {*facts()}


def test_what_a_reason_names_is_there():
    files = {file for reason in REASONS.values() for file in re.findall(r"tests/\S+\.py", reason)}
    named = {fact for reason in REASONS.values() for fact in re.findall(r"\b[A-Z]\w+\.\w+\b", reason)}
    assert [file for file in files if not (TESTS.parent / file).is_file()] == []
    assert named <= _FOUND.keys()


@pytest.mark.parametrize("scene", list(_BY_SCENE))
def test_each_fact_makes_a_difference_at_its_moment(scene, ask, record_property):
    assert ask("seams.trying", {scene: _BY_SCENE[scene]}) == []
    record_property("counted", (f"facts altered, of {len(_FOUND)}, one in {ONE_IN} at least", len(_BY_SCENE[scene])))


# As it once was: the situation was computed from a snapshot without what was learned.
BLIND = """
import json, sys
from dataclasses import replace
from autoscaler.domain import learn
from autoscaler.domain.facts.memory import Learned
from seams import trying
seen = learn._assess
learn._assess = lambda snapshot, fleet, memo: seen(replace(snapshot, learned=dict.fromkeys(snapshot.learned, Learned())), fleet, memo)
print(json.dumps(trying.answer(json.load(sys.stdin))))
"""


def test_a_fact_that_never_reaches_the_decision_is_noticed(ask):
    weights = {"Learned.weights": _FOUND["Learned.weights"]}
    scenes = {weights["Learned.weights"]["scene"]: weights}
    assert ask("seams.trying", scenes) == []
    assert without_what_was_learned(scenes) == ["Learned.weights"]


def without_what_was_learned(scenes):
    """What has no effect in a process that is blind to it."""
    environment = {**os.environ, "PYTHONPATH": paths()}
    command, given = [sys.executable, "-c", BLIND], json.dumps(scenes)
    done = subprocess.run(command, cwd=TESTS.parent, env=environment, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])
