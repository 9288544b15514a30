"""Every known way to kill, to leak or to waste, planted one at a time: the tests must find each. This judges the tests."""

import os
import re
import subprocess
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

from planted.bug import Bug
from support.definitions import NotPlantableError, definition_of, definitions_holding
from support.forks import paths
from support.sampling import ROOT, tried

FOLDER = Path(__file__).parent
_TESTS_FAILED = 1  # pytest's own: 0 is all passed, 2 and more that something else went wrong


def planted():
    """All bugs, each with the file that describes it."""
    bugs = {}
    for file in sorted(FOLDER.glob("*.py")):
        if not file.name.startswith("test_"):
            groups = [value for value in vars(import_module(f"planted.{file.stem}")).values() if isinstance(value, tuple)]
            bugs |= {bug: file.relative_to(ROOT) for group in groups for bug in group if isinstance(bug, Bug)}
    return bugs


def files_of(bug):
    holding = {definition.file.relative_to(ROOT) for definition in definitions_holding(bug.function, bug.was)}
    return holding | {*(Path(test.split("::")[0]) for test in bug.found_by)}


BUGS = planted()
REASONS = {bug: reason for bug, file in BUGS.items() if (reason := tried(bug.name, file, *files_of(bug)))}


@pytest.mark.parametrize("bug", REASONS, ids=lambda bug: bug.name)
def test_the_suite_finds(bug, ask, record_property):
    code, told = ask("support.planting", bug.function, bug.was, bug.becomes, bug.found_by)
    assert code == _TESTS_FAILED, told
    record_property("counted", ("planted bugs found", 1))
    record_property("counted", (f"planted bugs {REASONS[bug]}", 1))


def test_each_bug_can_be_planted_and_its_tests_exist(record_property):
    """This runs none of them, so each is checked every time."""
    assert [name for name, times in Counter(bug.name for bug in BUGS).items() if times > 1] == []
    texts = {file: (ROOT / file).read_text(encoding="utf-8") for bug in BUGS for file in files_of(bug) if (ROOT / file).exists()}
    assert [(bug.name, why) for bug in BUGS if (why := why_not_plantable(bug))] == []
    assert [(bug.name, test) for bug in BUGS for test in bug.found_by if not exists(test, texts)] == []
    record_property("counted", ("planted bugs found", 0, len(BUGS)))


def why_not_plantable(bug):
    try:
        definition_of(bug.function, bug.was)
    except NotPlantableError as error:
        return str(error)
    return ""


def exists(test, texts):
    """Tell whether there is a test file, or a test of this name in it."""
    file, _, name = test.partition("::")
    functions = {"", *re.findall(r"^def (test_\w+)\(", texts.get(Path(file), ""), re.MULTILINE)}
    return Path(file) in texts and name.partition("[")[0] in functions


def test_seeds_count_where_ci_is_set_too():
    """Hypothesis has settings of its own there, and a seed is then passed over without a word: the three draws would be one."""
    script = "import conftest; from hypothesis import settings; print(settings().derandomize)"
    environment = {**os.environ, "PYTHONPATH": paths(), "CI": "true", "HYPOTHESIS": "planted"}
    assert subprocess.check_output([sys.executable, "-c", script], env=environment, text=True) == "False\n"
