"""Every known way to kill, to leak or to waste, planted one at a time: the tests must find each. It is by this that they are judged."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from planted.bugs import BUGS
from planted.costly import COSTLY
from planted.money import MONEY
from planted.waiting import WAITING

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "layers" / "core" / "autoscaler"
_TESTS_FAILED = 1  # pytest's own: 0 is all passed, 2 and more that something else went wrong


@pytest.mark.parametrize("bug", [*BUGS, *MONEY, *WAITING, *COSTLY], ids=lambda bug: bug.name)
def test_the_suite_finds(bug, tmp_path, record_property):
    patched = tmp_path / "layer"
    shutil.copytree(SOURCE, patched / "autoscaler", ignore=shutil.ignore_patterns("__pycache__"))
    file = patched / "autoscaler" / bug.file
    text = file.read_text(encoding="utf-8")
    assert text.count(bug.was) == 1, f"{bug.file} has changed: say anew where the bug is planted"
    file.write_text(text.replace(bug.was, bug.becomes), encoding="utf-8")
    path = os.pathsep.join([str(patched), str(ROOT)])
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *bug.found_by]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == _TESTS_FAILED, done.stdout[-3000:] + done.stderr[-2000:]
    record_property("counted", ("planted bugs found", 1))
