"""Which cases a run tries: each commit others, always those whose files changed, and all of them if asked."""

import json
import os
import subprocess
import sys

import pytest

from support import sampling
from support.forks import paths

CASES = [f"case {number}" for number in range(800)]


@pytest.fixture(autouse=True)
def at(monkeypatch):
    """Check out a commit; files differ from the one of the last full run."""

    def checked_out(commit, *changed, whole=False):
        monkeypatch.setattr(sampling, "commit", lambda: commit)
        monkeypatch.setattr(sampling, "changed", lambda: frozenset(changed))
        monkeypatch.setattr(sampling, "WHOLE", whole)

    checked_out("a")
    return checked_out


def drawn():
    return {case for case in CASES if sampling.tried(case, "a file")}


def test_each_commit_draws_one_in_sixteen_and_others_than_the_last(at):
    first = drawn()
    assert first == drawn()
    at("b")
    second = drawn()
    assert all(30 < len(chosen) < 70 for chosen in (first, second))
    assert len(first & second) < 15


def test_over_a_hundred_commits_each_case_is_tried(at):
    tried = set()
    for number in range(100):
        at(f"commit {number}")
        tried |= drawn()
    assert len(tried) > 790


def test_one_case_in_some_is_tried_if_its_file_changed_and_the_others_with_other_commits(at):
    at("a", "a file")
    first = drawn()
    assert abs(len(first) - len(CASES) / sampling.ONE_IN_CHANGED) < 50
    assert {sampling.tried(case, "a file") for case in first} == {sampling.CHANGED}
    tried = set()
    for number in range(100):
        at(f"commit {number}", "a file")
        tried |= drawn()
    assert len(tried) > 790


def test_of_a_time_line_with_many_cases_a_third_is_tried_and_of_one_with_few_each(at):
    many, few = [f"test_a[{n}]" for n in range(9)], ["test_b[1]", "test_b[2]", "test_c"]
    chosen = sampling.some_of_each([*many, *few])
    assert (len({*chosen} & {*many}), {*few} <= {*chosen}) == (3, True)
    at("a", whole=True)
    assert sampling.some_of_each([*many, *few]) == [*many, *few]


def test_a_full_run_tries_each_case(at):
    at("a", whole=True)
    assert drawn() == {*CASES}
    assert sampling.some(CASES, most=3) == sampling.some(CASES, one_in=100) == CASES


def test_some_are_as_many_as_asked_for_in_their_order_and_others_with_each_commit(at):
    first = sampling.some(CASES, most=20)
    assert len(first) == 20
    assert first == [case for case in CASES if case in first]
    at("b")
    assert sampling.some(CASES, most=20) != first
    assert len(sampling.some(CASES, one_in=10)) == 80
    assert len(sampling.some(CASES[:3], one_in=10)) == 1
    assert sampling.some(CASES[:3], most=20) == CASES[:3]


CHANGED = sampling.changed.__wrapped__


def test_files_changed_since_the_noted_commit(monkeypatch, tmp_path):
    said = {"diff --name-only abc": "a.py\n", "ls-files --others --exclude-standard": "new.py\n"}
    monkeypatch.setattr(sampling, "_git", lambda *arguments: said[" ".join(arguments)])
    monkeypatch.setattr(sampling, "NOTED", tmp_path / "slow.json")
    assert CHANGED() == frozenset()
    sampling.NOTED.write_text(json.dumps({"commit": "abc"}), encoding="utf-8")
    assert CHANGED() == {"a.py", "new.py"}


def test_a_commit_with_changed_files_is_not_noted(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(sampling, "NOTED", tmp_path / "slow.json")
    monkeypatch.setattr(sampling, "_git", lambda *_: " M a.py\n")
    assert sampling.main() == 1
    assert "a.py" in capsys.readouterr().err
    monkeypatch.setattr(sampling, "_git", lambda *_: "")
    assert sampling.main() == 0
    assert json.loads(sampling.NOTED.read_text(encoding="utf-8")) == {"commit": "a"}


@pytest.mark.parametrize(("variables", "some_are_left_out"), [({}, True), ({"CI": "true"}, False), ({"WHOLE": "1"}, False)])
def test_ci_and_full_runs_try_each_test_of_the_handlers_and_each_walk(variables, some_are_left_out):
    script = "from support.sampling import ONE_IN_HANDLERS, ONE_IN_LONG_WALKS; print(ONE_IN_HANDLERS > 1, ONE_IN_LONG_WALKS > 1)"
    environment = {name: value for name, value in os.environ.items() if name not in {"CI", "WHOLE"}} | variables
    said = subprocess.check_output([sys.executable, "-c", script], env=environment | {"PYTHONPATH": paths()}, text=True)
    assert said.split() == [str(some_are_left_out)] * 2
