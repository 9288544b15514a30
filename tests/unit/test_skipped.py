"""What the summary says of tests that were skipped, and which skips CI forgives."""

import subprocess
import sys

import pytest

from packaging_root import ROOT
from support.live_scene import ON_LIVE_JENKINS
from support.needs import not_allowed, told
from support.tools import TOOLS

BROWSER = (
    "NOT TRIED: reports, dashboards and the live page in a browser (2 tests): needs chromium; apt-get install chromium chromium-driver"
)

PLUGIN = """
from support.needs import Needs, pytest_addoption
def pytest_configure(config):
    config.pluginmanager.register(Needs())
"""


def test_each_missing_tool_has_one_line_with_the_command_that_installs_it():
    lines = told(["needs chromium", "needs curl, root", "needs chromium"], left=0)
    assert lines[0] == BROWSER
    assert sorted(line.split("needs ")[1].split(";")[0] for line in lines) == ["chromium", "curl", "root"]


def test_other_reasons_are_counted_and_what_test_all_runs_is_said():
    assert told(["it rains", "it rains"], left=1) == [
        "NOT TRIED (2 tests): it rains",
        "left to `make test-all`: tests/environment, and 1 test whose tools are all here",
    ]


def test_a_tool_that_is_missing_has_its_line_though_no_test_that_needs_it_was_read():
    assert told(["needs chromium"], left=0, lacking=["chromium", "curl"]) == [
        BROWSER.replace("2 tests", "1 test"),
        "NOT TRIED: the keys of shared caches: needs curl; apt-get install curl ca-certificates",
    ]


@pytest.mark.parametrize("reason", ["needs root", "needs chromium", "needs python3.12, root", "it rains"])
def test_ci_forgives_no_skip_that_a_package_could_have_prevented(reason):
    assert not_allowed([reason]) == [reason]


@pytest.mark.parametrize("reason", ["needs python3.12", "needs cgroups", f"{ON_LIVE_JENKINS}https://j/: no matrices"])
def test_ci_forgives_other_pythons_cgroups_and_what_a_live_jenkins_lacks(reason):
    assert not_allowed([reason]) == []


def test_every_tool_says_what_is_tried_with_it_and_how_to_get_it():
    assert all(tool.tries and (tool.packages or tool.otherwise) for tool in TOOLS.values())


@pytest.mark.long
@pytest.mark.parametrize(("ci", "code"), [("true", 1), ("", 0)])
def test_with_ci_a_skip_fails_the_run(tmp_path, ci, code):
    (tmp_path / "conftest.py").write_text(PLUGIN, encoding="utf-8")
    (tmp_path / "test_a.py").write_text("import pytest\n\n\ndef test_a():\n    pytest.skip('it rains')\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", tmp_path, tmp_path]
    environment = {"PYTHONPATH": f"{ROOT}/tests:{ROOT}/agent/gpu-lease", "CI": ci}
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    assert "NOT TRIED (1 test): it rains" in done.stdout
