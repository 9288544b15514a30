"""The wheels: built without a trace, installed in each Python that is there, and used for what a new user does first."""

import json
import os
import subprocess

import pytest

from packaging_root import ROOT
from support.clones import clone_of_the_work_tree, status_of
from support.sampling import some
from support.tools import python_of

UV = ROOT / ".venv" / "bin" / "uv"
MEGABYTES = 100  # of the command line alone; with pictures and the local AWS it is twice as much


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """Both wheels, and what building them left in a clone."""
    clone, dist = clone_of_the_work_tree(tmp_path_factory.mktemp("clone")), tmp_path_factory.mktemp("dist")
    for project in ("layers/core", "."):
        done = run(UV, "build", "--quiet", "--wheel", "--out-dir", dist, project, cwd=clone)
        assert done.returncode == 0, done.stderr
    return sorted(dist.glob("*.whl")), clone


def test_building_leaves_nothing_behind(wheels):
    built, clone = wheels
    assert [path.name.split("-")[0] for path in built] == ["jenkins_autoscaler", "jenkins_autoscaler_workbench"]
    assert status_of(clone, "--ignored") == []


def in_python(version):
    return pytest.param(version, marks=pytest.mark.needs(f"python{version}"))


@pytest.fixture(scope="module", params=map(in_python, (*some(["3.11", "3.12"], most=1), "3.13")))
def installed(request, wheels, tmp_path_factory):
    """The command line, installed without extras in one version of Python."""
    folder = tmp_path_factory.mktemp("wheel") / "venv"
    assert run(UV, "venv", "--quiet", "--python", python_of(request.param), folder).returncode == 0
    install(folder, *wheels[0])
    return folder


def test_the_command_line_alone_is_small_and_shows_what_it_can(installed, tmp_path):
    assert "nothing was left over" in said(installed, "simulate", "--hours", "1", cwd=tmp_path)
    told = said(installed, "demo", "--hours", "1", cwd=tmp_path)
    assert "The real handlers did not run: pip install 'jenkins-autoscaler-workbench[demo]'." in " ".join(told.split())
    assert "mxnetlinux-gpu" in said(installed, "validate", cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []
    files = {path.stat().st_ino: path.stat().st_size for path in installed.rglob("*") if path.is_file()}
    assert sum(files.values()) < MEGABYTES * 1_000_000


def test_a_deployment_that_cannot_be_reached_is_said_in_one_line(installed, tmp_path):
    done = command(installed, "status", "--local", "http://127.0.0.1:9", cwd=tmp_path)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)


def test_with_its_extra_the_demo_runs_the_real_handlers_and_draws_pictures(installed, wheels, tmp_path):
    install(installed, f"jenkins-autoscaler-workbench[demo] @ {wheels[0][1].as_uri()}")
    told = json.loads(said(installed, "demo", "--hours", "0.5", "--json", "--out", tmp_path / "out", cwd=tmp_path))
    assert told["handlers"]["same"] is True
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "dashboard.html",
        "day.json.gz",
        "report.html",
        "report.png",
        "report.svg",
    }


def install(folder, *what):
    done = run(UV, "pip", "install", "--quiet", "--python", folder / "bin" / "python", *what)
    assert done.returncode == 0, done.stderr


def said(folder, *arguments, cwd):
    done = command(folder, *arguments, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def command(folder, *arguments, cwd):
    return run(folder / "bin" / "autoscaler", *arguments, cwd=cwd)


def run(*words, cwd=None):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "AUTOSCALER_", "PYTHON", "VIRTUAL_ENV"))}
    return subprocess.run([str(word) for word in words], cwd=cwd, env=kept, capture_output=True, text=True, check=False, timeout=300)
