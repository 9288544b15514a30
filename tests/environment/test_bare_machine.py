"""`make test` on a bare machine: a fresh clone, an ordinary user, and a path that holds only Python, git, make and a shell's commands.

It collects every test there. It runs those folders whose tests start processes, and of the others some files, others with each commit;
with ``WHOLE=1`` all that meet the machine. Every other run of `make test` has the same bare path, so only the user is new here.
"""

import os
import re
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from packaging_root import ROOT
from support.clones import clone_of_the_work_tree
from support.sampling import ONE_IN, some
from support.tools import TOOLS, link_basic_programs, program

NOBODY = 65534
FOR_NETWORK = ("PIP_", "UV_", "SSL_", "REQUESTS_", "HTTP", "http", "NO_PROXY", "no_proxy")
ALL_OF = ("agent", "packaging")
# They compute for minutes, and meet nothing of the machine.
NONE_OF = ("environment", "planted", "seams", "faults", "properties", "scenarios", "corpus", "oracle", "ratchet", "walks")
FILES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py") if not {*NONE_OF} & {*path.parts})


@pytest.fixture(scope="module")
def bare():
    """Run words in a clone of the work tree as an ordinary user who has nothing else; return what they printed, if they did not fail."""
    # Not pytest's own directory: another user may not enter that.
    with tempfile.TemporaryDirectory(prefix="autoscaler-bare-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        for part in ("project", "home", "bin"):
            (folder / part).mkdir()
        clone_of_the_work_tree(folder / "project")
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        link_basic_programs(folder / "bin")
        (folder / "bin" / "python3").unlink(missing_ok=True)
        (folder / "bin" / "python3").symlink_to(python_for(user))
        if user:
            subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", folder / "project", folder / "home"], check=True)
        kept = {name: value for name, value in os.environ.items() if name.startswith(FOR_NETWORK)}
        environment = kept | {"HOME": str(folder / "home"), "PATH": str(folder / "bin"), "LANG": "C.UTF-8"}

        def runs(*words):
            facts = {"cwd": folder / "project", "env": environment, "text": True, "timeout": 1200, "stdin": subprocess.DEVNULL}
            done = subprocess.run(words, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **facts, **user)
            assert done.returncode == 0, done.stdout[-6000:]
            return done.stdout

        yield runs


def python_for(user):
    """Find a Python that this user may run: root's own may be in root's home."""
    usable = "import ensurepip, sys; sys.exit(sys.version_info < (3, 11))"
    for python in filter(None, [program("python3"), "/usr/bin/python3", sys._base_executable]):
        with suppress(OSError):
            if subprocess.run([python, "-c", usable], capture_output=True, check=False, cwd="/", **user).returncode == 0:
                return python
    pytest.fail("an ordinary user finds no Python 3.11 or newer with venv here: apt-get install python3-venv")


def pytest_words(*words):
    """The command that `make test` runs here, with these words: more workers than cores, since tests of the agent mostly sleep."""
    return " ".join([".venv/bin/pytest", "-p", "no:cacheprovider", *words])


def test_every_test_is_collected_on_a_bare_machine(bare):
    assert "error" not in bare("make", "test", f"PYTEST={pytest_words('--collect-only', '-qq')}").lower().split()


def test_what_make_test_runs_there_does_not_fail_and_each_missing_tool_has_one_line(bare):
    drawn = some([file for file in FILES if file.split("/")[1] not in ALL_OF], 1 if ONE_IN == 1 else 2 * ONE_IN)
    said = bare("make", "test", f"PYTEST={pytest_words('-n', '4', *(f'tests/{folder}' for folder in ALL_OF), *drawn)}")
    assert re.search(r"\d+ passed", said), said[-2000:]
    lines = [line for line in said.splitlines() if line.startswith("NOT TRIED: ")]
    missing = {name for name, tool in TOOLS.items() if name != "cgroups" and not tool.optional}
    for name in missing:
        about = [line for line in lines if f": needs {name}; {TOOLS[name].remedy}" in line]
        assert len(about) == 1, f"{name}: {lines}"


def test_git_and_make_are_on_that_path_and_a_browser_is_not(bare):
    assert program("git")
    there = bare("sh", "-c", "for name in git make python3 chromium node shellcheck docker; do command -v $name || true; done")
    assert [Path(line).name for line in there.splitlines()] == ["git", "make", "python3"]
