"""The samples of events about runs that people order, and the commands, through the real handlers on the fleet of docs/runs.md."""

from pathlib import Path

import pytest

from autoscaler.errors import ConfigError
from autoscaler_workbench.fakes.http_fakes.jenkins.jobs import Job
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from packaging_root import ROOT
from support.asked import command, served, told
from support.deployed import deployed_in_memory, event
from support.page_commands import blocks_of

PAGE = ROOT / "docs" / "runs.md"
DECLARES = {"AGENT_LABEL": "", "AUTOSCALER_RUN_ID": "", "REF": ""}


@pytest.fixture
def here(tmp_path):
    file = Path(tmp_path) / "fleet.yaml"
    file.write_text(next(block.text for block in blocks_of(PAGE) if block.text.startswith("fleet:")), encoding="utf-8")
    with deployed_in_memory(file) as stood, served(stood, "operate"):
        for controller in stood.server.jenkins.values():
            controller.jobs.jobs["nightly/kernel"] = Job(Kind.PIPELINE, None, 600.0, DECLARES, label_parameter="AGENT_LABEL")
        stood.pass_minutes(1)
        yield stood


def started(here, controller="main"):
    """What each build of the job was started with."""
    builds = here.world.controllers[controller].builds_of.get("nightly/kernel", [])
    return [dict(build.started_with.parameters) for build in builds]


def test_one_build_is_started_on_each_kind_of_card_with_its_parameters_and_only_once(here):
    for _ in range(2):
        [order] = here.call("operate", event("run"))["runs"]
    assert {part["value"] for part in order["parts"]} == {"linux+a10g", "linux+t4", "linux+l4"}
    assert sorted(one["AGENT_LABEL"] for one in started(here)) == sorted(part["label"] for part in order["parts"])
    assert {one["REF"] for one in started(here)} == {"main"}
    assert (order["by"], order["reason"], order["outcome"]) == ("ada", "is it the card?", None)


def test_a_gang_is_ordered_and_both_are_listed(here):
    [gang] = here.call("operate", event("run_gang"))["runs"]
    assert (gang["until"], len(gang["parts"]), len(started(here))) == ("first-success", 4, 4)
    [cards] = here.call("operate", event("run"))["runs"]
    listed = here.call("operate", event("runs"))["runs"]
    assert {order["id"] for order in listed} == {gang["id"], cards["id"]}


def test_what_one_sample_orders_another_one_cancels(here):
    with pytest.raises(ConfigError, match="there is no such run"):
        here.call("operate", event("cancel_run"))
    here.call("operate", event("run"))
    here.call("operate", event("cancel_run"))
    here.pass_minutes(3)
    [order] = here.call("operate", event("runs"))["runs"]
    assert (order["outcome"], order["summary"]) == ("cancelled", "cancelled by ada")
    assert here.world.controllers["main"].queue == []


def test_the_samples_are_events_that_the_command_line_sends_too(here):
    words = "run nightly/kernel --param REF=main --on gpu --where vcpu>=4 --runs 3 --vary kind --strict --request-id kernel-on-each-card-1"
    [order] = told(here, *words.split())["runs"]
    assert order["id"] == event("cancel_run")["id"]
    assert [one["id"] for one in told(here, "runs")["runs"]] == [order["id"]]
    assert told(here, "runs", order["id"], code=6)["runs"] == told(here, "runs")["runs"]
    assert command(here, "runs", "cancel", order["id"]).exit_code == 0
    here.pass_minutes(3)
    assert told(here, "runs", order["id"], code=5)["runs"][0]["outcome"] == "cancelled"


def test_the_builds_run_on_the_pools_that_were_chosen_and_a_script_is_told_that_they_passed(here):
    [order] = here.call("operate", event("run"))["runs"]
    here.pass_minutes(30)
    [ended] = told(here, "runs", order["id"], code=0)["runs"]
    assert (ended["outcome"], ended["summary"]) == ("passed", "3 of 3 passed")
    pools = {part["run"]: part["pool"] for part in ended["parts"]}
    builds = here.world.controllers["main"].builds_of["nightly/kernel"]
    assert all(build.node.startswith(f"{pools[build.run_path.rstrip('/')]}-") for build in builds)
    assert all(part["took_seconds"] > 580 for part in ended["parts"])
    waited = command(here, "runs", order["id"], "--watch", columns=140)
    assert (waited.exit_code, waited.stdout.count("passed")) == (0, 4)


def test_too_few_kinds_are_refused_before_anything_starts(here):
    with pytest.raises(ConfigError, match="only 3 different kinds"):
        here.call("operate", event("run") | {"runs": 4, "request_id": "another"})
    assert started(here) == []
    [order] = told(here, *"run nightly/kernel --on gpu --vary kind --runs 4 --dry-run".split())["runs"]
    assert [part["state"] for part in order["parts"]] == ["to be started"] * 4
    assert started(here) == []
