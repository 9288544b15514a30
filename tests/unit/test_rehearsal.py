"""The rehearsal's own account: which steps it plays, where, and what its last line says. `make rehearse` plays the story itself."""

import os
import re
import signal
import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest

from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from packaging_root import ROOT
from rehearsal import __main__ as rehearsal
from rehearsal.plan import new_plan
from rehearsal.releases import NEWEST_RELEASE
from rehearsal.report import DifferenceError
from support import live_jobs
from support.rig import ended_by_signals


def all_is_well(report):
    report.check("what was seen", 1, 1)


def a_check_fails(report):
    report.check("what was seen", 1, 2)


def the_story_ends(report):
    raise DifferenceError("not within 1200 s, so the story ends here: builds")


def something_breaks(report):
    raise RuntimeError("sam deploy: status 1\nno such bucket")


def it_is_told_to_end(report):
    os.kill(os.getpid(), signal.SIGTERM)
    signal.pause()


@pytest.fixture
def rehearse(monkeypatch, capsys):
    def rehearse(story, upgrade="", words=()):
        monkeypatch.setattr(rehearsal, "play", lambda _plan, report, steps: story(report))
        monkeypatch.setattr(rehearsal, "_PLAY_UPGRADE", (sys.executable, "-c", upgrade))
        with ended_by_signals():
            status = rehearsal.main(list(words))
        return status, capsys.readouterr().out.splitlines()

    return rehearse


def test_if_all_went_well_the_last_line_says_so(rehearse):
    status, lines = rehearse(all_is_well)
    assert (status, lines[-1]) == (0, "rehearsal: nothing differs")


@pytest.mark.parametrize("story", [a_check_fails, the_story_ends, something_breaks, it_is_told_to_end])
def test_whatever_failed_the_last_line_says_so(rehearse, story):
    status, lines = rehearse(story)
    assert (status, lines[-1]) == (1, "rehearsal: FAILED, 1 of the lines above")


@pytest.mark.parametrize("story", [all_is_well, a_check_fails])
@pytest.mark.parametrize(
    "upgrade", ["exit(1)", "raise RuntimeError", "import os; os.kill(os.getpid(), 9)"], ids=["differs", "breaks", "is killed"]
)
def test_an_upgrade_that_failed_beside_the_story_is_in_the_last_line(rehearse, story, upgrade):
    status, lines = rehearse(story, upgrade)
    assert (status, lines[-1]) == (1, f"rehearsal: FAILED, {2 if story is a_check_fails else 1} of the lines above")
    assert any(line.startswith("upgrade: it ended with status") for line in lines[-3:])


@pytest.mark.parametrize("step", ["work", "operator", "trouble", "scale-in"])
def test_a_step_alone_begins_with_the_agents_that_the_first_one_leaves(monkeypatch, step):
    played = []
    monkeypatch.setattr(rehearsal, "play", lambda _plan, _report, steps: played.extend(steps))
    assert rehearsal.main([step]) == 0
    assert set(played) == {"work", step}


def test_two_rehearsals_at_once_share_no_port_and_no_folder():
    with new_plan() as one, new_plan() as other:
        ports = [{plan.port, plan.jenkins_port, plan.metadata_port, plan.port_beside} for plan in (one, other)]
        assert not ports[0] & ports[1]
        assert one.folder != other.folder


def test_the_shell_of_a_build_ends_well_once_it_is_told_to(tmp_path):
    job = live_jobs.config(Kind.FREESTYLE, "cpu", 86_400.0, (), ended_by=tmp_path / "end")
    command = ET.fromstring(job.partition("?>")[2]).findtext("builders/hudson.tasks.Shell/command")
    with subprocess.Popen(["/bin/sh", "-xe", "-c", command], stderr=subprocess.PIPE, text=True) as shell:
        for line in shell.stderr:
            if line.startswith("+ sleep 1"):
                (tmp_path / "end").touch()
        assert shell.wait() == 0


def test_the_upgrade_begins_with_the_newest_version_of_the_changelog():
    versions = re.findall(r"(?m)^## (\d+\.\d+\.\d+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert NEWEST_RELEASE.version == versions[0]


def test_the_page_about_upgrades_names_the_commit_of_the_newest_version():
    page = (ROOT / "docs" / "upgrade.md").read_text(encoding="utf-8")
    assert f"{NEWEST_RELEASE.version} is `{NEWEST_RELEASE.commit[:8]}`" in page
