"""How a run shares its tests out: by file, and those that sleep on one worker."""

from support.spent import TESTS
from support.workers import WAITS, unit_of


def test_a_file_stays_on_one_worker():
    first, second = "tests/unit/test_a.py::test_x[1]", "tests/unit/test_a.py::TestY::test_z"
    assert unit_of(first) == unit_of(second) == "tests/unit/test_a.py"


def test_all_that_sleeps_stays_on_one_worker():
    assert (TESTS.parent / WAITS).is_dir()
    assert {unit_of(f"{WAITS}/test_{name}.py::test_x") for name in "ab"} == {WAITS}
    assert unit_of("tests/agents/test_a.py::test_x") == "tests/agents/test_a.py"
