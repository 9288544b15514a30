"""What jobs need, through the real handlers and on the command line: told by agents, asked by people."""

import json

import pytest

from autoscaler.errors import ConfigError
from autoscaler_workbench.experiment.by_needs import read_needs
from autoscaler_workbench.fakes.world.usage import GIB, Need, Usage
from support.asked import command, served, told
from support.deployed import deployed_in_memory, event

CPU, GPU = "mxnetlinux-cpu", "mxnetlinux-gpu"


@pytest.fixture(scope="module")
def here():
    with deployed_in_memory() as stood, served(stood, "operate"):
        stood.world.usage = Usage(stood.world.timeline, stood.world.controllers)
        stood.world.usage.needs["folder/=job"] = Need(memory=9 * GIB, cores=3.0)
        stood.pass_minutes(1)
        jenkins = stood.world.controllers["main"]
        for _ in range(3):
            jenkins.submit("folder/=job", CPU, 400.0)
            stood.pass_minutes(14)
        stood.pass_minutes(12)
        yield stood


def needs(here, **asked):
    return here.call("operate", event("needs") | asked)["needs"]


def test_what_agents_told_of_a_job_s_builds_is_told_to_people(here):
    [one] = needs(here)
    assert (one["job"], one["pool"], one["builds"], one["exact"]) == ("folder/=job", CPU, 3, True)
    assert one["memory"]["p95"] == pytest.approx(9 * GIB, rel=0.04)
    assert one["cores"]["p50"] == pytest.approx(3.0, rel=0.1)
    assert one["hours"] == pytest.approx(3 * 400 / 3600, rel=0.1)
    assert (one["heavy"], one["share"]) == (True, pytest.approx(9 / 16, rel=0.04)), "a fourth of the machine is an executor's"


def test_a_pattern_picks_jobs_and_nonsense_is_refused(here):
    assert needs(here, pattern="folder/*") == needs(here)
    assert not needs(here, pattern="other")
    with pytest.raises(ConfigError, match="most"):
        needs(here, most=0)


def test_the_command_prints_a_table_json_and_lines_for_a_spreadsheet(here):
    drawn = command(here, "needs", columns=200).stdout
    assert all(word in drawn for word in ("folder/=job", "9.", "GiB", "heavy: more memory than its executor's share", "of 25%"))
    assert "no agent has told" in command(here, "needs", "nobody", columns=160).stdout
    assert told(here, "needs")["needs"][0]["job"] == "folder/=job"
    head, line = command(here, "needs", "--csv").stdout.splitlines()
    assert head.split(",")[:6] == ["controller", "job", "signature", "pool", "builds", "exact"]
    assert line.startswith("main,folder/=job,,mxnetlinux-cpu,3,1,")
    assert len(head.split(",")) == len(line.split(","))


def test_what_people_ask_for_jobs_has_no_line_for_what_was_only_measured(here):
    assert {job["runs"] for job in here.call("operate", event("jobs"))["jobs"]} == {3}


def test_tune_reads_what_it_prints(here, tmp_path):
    file = tmp_path / "needs.json"
    file.write_text(json.dumps(told(here, "needs")), encoding="utf-8")
    [need] = read_needs(file)
    assert (need.job, need.pool, need.uses_gpu) == ("folder/=job", CPU, None)
    assert need.memory_gib == pytest.approx(9.0, rel=0.04)
