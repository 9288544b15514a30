"""What a bare machine is told: one line, with what to install, if something that every command needs is missing."""

import subprocess

import pytest

from packaging_root import ROOT
from support.tools import program


def sets_up(tmp_path, python, *, path="/usr/bin:/bin"):
    """Let the set-up use a Python that is this shell script."""
    if python is not None:
        (tmp_path / "python").write_text(f"#!/bin/sh\n{python}\n", encoding="utf-8")
        (tmp_path / "python").chmod(0o755)
    words = [str(tmp_path / "python"), str(tmp_path / "venv"), str(tmp_path / "mark"), "what it needs", "--", "x"]
    return subprocess.run([ROOT / ".ci/environment", *words], env={"PATH": path}, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("python", "said"),
    [
        (None, "needs Python 3.11 or newer with venv: apt-get install python3 python3-venv, or PYTHON=/path/to/python3.11"),
        ('[ "$1" = --version ] && echo Python 3.9.2; exit 1', "needs Python 3.11 or newer with venv: apt-get install python3"),
        ('case "$*" in *version_info*) exit 0 ;; esac; exit 1', "needs venv for "),
    ],
    ids=["no python", "an old one", "no venv"],
)
def test_what_is_missing_is_one_line_that_says_what_to_install(tmp_path, python, said):
    done = sets_up(tmp_path, python)
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.startswith(said)
    assert "apt-get install python3" in line
    assert not (tmp_path / "mark").exists()


def test_without_git_make_test_says_so_in_one_line():
    """Its set-up is taken as done; nothing is tested."""
    done_before = [f"--old-file={mark}/.ready" for mark in (".venv", ".venv-sam")]
    command = [program("make"), "test", *done_before, "PYTEST=true"]
    done = subprocess.run(command, cwd=ROOT, env={"PATH": "/nowhere"}, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[0] == "needs git: apt-get install git"
