"""Agents that are stopped and started again, as the people see them who run the fleet."""

from pathlib import Path

import pytest

from autoscaler_workbench.cli import answers
from autoscaler_workbench.report.dashboard.cloudformation import FULL
from autoscaler_workbench.report.dashboard.widgets import read_widgets
from packaging_root import ROOT
from support.deployed import deployed_in_memory, event
from support.ringing import ringing_in

TEMPLATE = ROOT / "template.yaml"

FLEET = """
fleet: mxnet-ci
limits: {max_agents: 40, max_launches_per_hour: 60, max_usd_per_hour: 80, max_usd_per_month: 12000}
controllers: {main: {url: "https://jenkins.example.org/", secret: jenkins/main}}
defaults: {queue_maturity_seconds: 0, warm_pool: {}}
pools:
  cpu: {executors: 1, launch_template: t, instance_types: [c5.xlarge], max_agents: 6, usd_per_hour: 0.2, warm_pool: {min_agents: 2}}
  gpu: {executors: 1, launch_template: t, instance_types: [g4dn.xlarge], max_agents: 3, usd_per_hour: 0.6}
"""
DISK_USD_PER_HOUR = 100 * 0.08 / 730  # GiB, and dollars a GiB and month


@pytest.fixture
def stopped(here):
    """The two instances that the fleet file wants stopped; nothing else is there."""
    here.pass_minutes(30)
    found = here.world.alive()
    assert [instance.state for instance in found] == ["stopped", "stopped"]
    return found


def status(here):
    return here.call("operate", event("status"))["status"]


def asked(here, action, **facts):
    return here.call("operate", event(action) | facts)


def submitted(here, count, label="cpu"):
    """Jobs that wait, and have waited for long enough to count."""
    for number in range(count):
        here.world.controllers["main"].submit(f"{label}-job-{number}", label, 900.0)
    here.world.move_to(here.world.timeline.now + 5)


def test_a_stopped_agent_costs_its_disk_and_is_no_agent(here, stopped):
    told = status(here)
    usd = len(stopped) * DISK_USD_PER_HOUR
    assert (told["usd_per_hour"], told["reserved_usd_per_hour"]) == (pytest.approx(usd, abs=1e-3), pytest.approx(usd, abs=1e-3))
    assert told["agents"] == 0
    cpu, gpu = told["pools"]
    assert (cpu["agents"], cpu["usd_per_hour"], gpu["off"]["count"]) == ({}, pytest.approx(usd, abs=1e-3), 0)
    off = cpu["off"]
    assert (off["count"], off["at_least"], off["at_most"], off["usd_per_hour"]) == (2, 2, 6, pytest.approx(usd, abs=1e-3))
    assert 0 < off["longest_seconds"] < 1800


def test_status_names_the_stopped_agents_of_a_pool(here, stopped, capsys):
    answers.print_status(asked(here, "status"))
    out = capsys.readouterr().out
    header, cpu, *_ = (line.split("\t") for line in out[out.index("pool\t") :].splitlines())
    assert dict(zip(header, cpu, strict=True)) | {"agents": "0 of 6", "stopped": "2", "$/h": "0.02"} == dict(zip(header, cpu, strict=True))
    [line] = [line for line in out.splitlines() if line.startswith("cpu: ")]
    assert line.startswith("cpu: 2 of at most 6 agents stopped, the first ")
    assert line.endswith(" ago; their disks cost $0.02 an hour")


def test_a_fleet_without_a_warm_pool_has_no_column_for_it(capsys):
    with deployed_in_memory() as stood:
        stood.call("scale_up", event("tick"))
        answers.print_status(asked(stood, "status"))
    assert "stopped" not in capsys.readouterr().out


def test_the_list_of_agents_says_since_when_one_is_stopped_and_for_how_long_it_is_kept(here, stopped):
    told = asked(here, "agents")["agents"]
    assert {(one["word"], round(one["usd_per_hour"], 3), one["idle_seconds"]) for one in told} == {("stopped", 0.011, None)}
    assert all(one["note"].startswith("stopped ") and one["note"].endswith("kept in any case (warm_pool.min_agents 2)") for one in told)
    assert {one["node"] for one in told} == {f"cpu-{instance.id[2:]}" for instance in stopped}, "it comes back under this name"


def test_the_plan_says_how_many_are_started_and_what_is_launched_where_ec2_refuses(here, stopped, capsys):
    submitted(here, 2)
    told = asked(here, "plan")
    [start] = told["plan"]["steps"]
    assert (start["step"], start["count"], start["started"], start["instead"]) == ("start", 2, 0, ["c5.xlarge"])
    assert set(start["instance_ids"]) == {instance.id for instance in stopped}
    answers.print_plan(told)
    [_, row] = capsys.readouterr().out.splitlines()
    assert row.split("\t")[:3] == ["start", "cpu", "2"]
    assert row.endswith("; what EC2 refuses to start is launched instead (c5.xlarge)")


def test_the_history_has_stops_and_starts(here, stopped):
    submitted(here, 2)
    here.pass_minutes(1)
    told = [(one["what"], one["subject"]) for one in asked(here, "events", pool="cpu")["events"]]
    names = {f"cpu-{instance.id[2:]}" for instance in stopped}
    assert {("stop", name) for name in names} | {("finish-stop", name) for name in names} | {("start", "2 of 2")} <= set(told)


def test_what_ec2_refuses_to_start_is_launched_in_the_same_pass_and_both_are_told(here, stopped, capsys):
    here.world.ec2.capacity["c5.xlarge//on-demand"] = 1
    submitted(here, 2)
    steps = here.call("scale_up", {})["steps"]
    answers.print_plan({"plan": {"steps": steps, "held": []}})
    rows = [row.split("\t") for row in capsys.readouterr().out.splitlines()[1:]]
    assert [row[:3] for row in rows] == [["start", "cpu", "1 of 2"], ["launch", "cpu", "1"]]
    assert "InsufficientInstanceCapacity" in rows[0][5]


def test_a_person_who_asks_for_agents_is_told_which_of_them_were_started_again(here, stopped, capsys):
    answer = here.call("scale_up", event("scale_up") | {"pool": "cpu", "count": 3, "keep_minutes": 60})
    answers.print_launch({"plan": answer}, "cpu", 3, 60)
    assert capsys.readouterr().out.startswith("3 of 3 agents of cpu launched, 2 of them started again; kept until ")


def announced(here, instance, name="instance_stopped"):
    """What follows when EventBridge delivers a change of state of this instance."""
    said = event(name)
    plan = here.call("instance_events", said | {"detail": said["detail"] | {"instance-id": instance.id}})
    return [(step["step"], step["reason"], step["outcome"]) for step in plan.get("steps", [])]


def passed_until(here, instance, state):
    """Let the world pass, second by second and without the schedule, until EC2 shows this state."""
    for _ in range(600):
        if instance.state == state:
            return
        here.world.move_to(here.world.timeline.now + 1)
    raise AssertionError(f"{instance.id} is {instance.state}")


@pytest.fixture
def stopping(here):
    """An instance that is being stopped, and its node."""
    for _ in range(30):
        here.pass_minutes(1)
        if found := [instance for instance in here.world.alive() if instance.state == "stopping"]:
            return found[0], here.world.node_of(found[0])
    raise AssertionError("nothing is stopped")


def test_a_stop_is_finished_as_soon_as_ec2_announces_it(here, stopping):
    instance, node = stopping
    assert node.name in here.world.controllers["main"].nodes
    assert announced(here, instance) == [], "it is stopping still"
    passed_until(here, instance, "stopped")
    assert announced(here, instance) == [("finish-stop", "has-stopped", "done")]
    assert node.name not in here.world.controllers["main"].nodes
    assert announced(here, instance) == [], "there is nothing left to do"
    assert {one["word"] for one in asked(here, "agents")["agents"] if one["instance_id"] == instance.id} == {"stopped"}


def test_a_start_that_failed_is_known_as_soon_as_ec2_announces_it(here, stopped):
    for instance in stopped:
        instance.fails_to_start = "Server.InsufficientInstanceCapacity"
    submitted(here, 1)
    here.call("scale_up", {})
    [tried] = [instance for instance in stopped if instance.state == "pending"]
    assert announced(here, tried) == [], "it is pending"
    passed_until(here, tried, "stopped")
    assert announced(here, tried) == [("finish-stop", "start-failed", "done")]


def sent(here, name, **dimensions):
    """The values of a metric that were sent for a pool, or for the fleet."""
    asked_for = {"Fleet": "mxnet-ci", **dimensions}
    return [value for _, datum in here.metrics if datum.name == name and dict(datum.dimensions) == asked_for for value in datum.values]


CPU, GPU = ({"Controller": "main", "Pool": name} for name in ("cpu", "gpu"))


def test_metrics_count_stopped_agents_and_measure_starts_apart_from_boots(here, stopped):
    here.call("publish_metrics", {})
    assert (sent(here, "AgentsStopped", **CPU)[-1], sent(here, "AgentsStopped")[-1], sent(here, "AgentsStopped", **GPU)) == (2, 2, [])
    boots, starts = (sent(here, name, **CPU) for name in ("BootSeconds", "StartSeconds"))
    started = sum(sent(here, "Starts"))
    # The first that stopped was started once, to see whether that works.
    assert (len(boots), len(starts), started, sum(sent(here, "Stops"))) == (2, 1, 1, 3)
    assert sent(here, "UsdPerHour")[-1] == pytest.approx(2 * DISK_USD_PER_HOUR, abs=1e-3)
    submitted(here, 2)
    here.call("scale_up", {})
    here.call("publish_metrics", {})
    assert (sent(here, "AgentsStarting", **CPU)[-1], sent(here, "AgentsBooting", **CPU)[-1], sum(sent(here, "Starts"))) == (2, 2, 3)
    here.pass_minutes(4)
    starts = sent(here, "StartSeconds", **CPU)
    assert (len(starts), sent(here, "BootSeconds", **CPU)) == (3, boots)
    assert all(0 < seconds < 180 for seconds in starts)
    assert sent(here, "StartsFailed") == []


def test_the_dashboard_draws_stopped_agents_and_their_starts(here, stopped):
    submitted(here, 2)
    here.pass_minutes(4)
    drawn = {
        widget.title: [series.label for series in widget.series] for widget in read_widgets(TEMPLATE, "mxnet-ci", here.metrics, **FULL)
    }
    assert (drawn["Stopped agents by pool"], drawn["How long starts of stopped agents took"]) == (["cpu"], ["cpu"])
    assert "stopped" in drawn["Agents by state"]
    assert {"started again", "stopped"} <= set(drawn["Launched, started, stopped and given up"])


def test_a_fleet_without_a_warm_pool_pays_for_no_metric_of_it():
    with deployed_in_memory() as stood:
        stood.call("scale_up", event("tick"))
        stood.pass_minutes(12)
        names = {datum.name for _, datum in stood.metrics}
    assert "BootSeconds" in names
    assert not names & {"AgentsStopped", "AgentsStarting", "StartSeconds", "Starts", "Stops", "StartsFailed"}


@pytest.fixture
def four_stopped(tmp_path):
    """A fleet with four stopped agents, and nothing else."""
    file = Path(tmp_path) / "fleet.yaml"
    file.write_text(FLEET.replace("min_agents: 2", "min_agents: 4"), encoding="utf-8")
    with deployed_in_memory(file) as here:
        here.call("scale_up", event("tick"))
        here.pass_minutes(30)
        assert [instance.state for instance in here.world.alive()] == ["stopped"] * 4
        assert ringing_in(here) == set()
        yield here


def test_starts_that_keep_failing_ring_an_alarm(four_stopped):
    here = four_stopped
    for instance in here.world.alive():
        instance.fails_to_start = "Client.InvalidKMSKey.InvalidState"
    submitted(here, 4)
    here.pass_minutes(4)
    assert ringing_in(here) == {"StartsFailed"}
    assert sum(sent(here, "StartsFailed")) == 4


def test_people_are_told_what_ec2_answers_where_it_refuses_to_start_agents(four_stopped):
    here = four_stopped
    first = here.world.alive()
    for instance in first:
        instance.refuses_to_start = "Unsupported"
    submitted(here, 4)
    here.pass_minutes(2)
    assert sum(sent(here, "StartsFailed")) >= 4
    assert "StartsFailed" in ringing_in(here)
    [(subject, text)] = here.told()
    assert subject == "[mxnet-ci] stopped agents of cpu do not start"
    assert "4 starts in a row failed: EC2 answered Unsupported; none is kept stopped, and one is tried from " in text
    assert "docs/operations.md#starts-failed" in text
    [line] = [fact for fact in asked(here, "why", subject="cpu")["facts"] if "starts in a row failed" in fact]
    assert line.startswith("4 starts in a row failed: EC2 answered Unsupported; none is kept stopped")
    here.pass_minutes(60)
    assert not any(instance.alive() for instance in first)
    assert [subject for subject, _ in here.told()][-1] == "[mxnet-ci] over: stopped agents of cpu do not start"


def test_the_doctor_says_what_a_start_needs_where_volumes_have_a_key_of_their_own(here):
    def said():
        return {
            one["about"]: (one["fine"], one["detail"])
            for one in asked(here, "doctor")["findings"]
            if "a stopped agent starts" in one["what"]
        }

    assert said() == {}
    root, _ = here.world.ec2.template_data["t"]["BlockDeviceMappings"]
    root["Ebs"]["KmsKeyId"] = "arn:aws:kms:us-west-2:123456789012:key/0a1b2c3d"
    told = said()
    assert set(told) == {"cpu", "gpu"}
    assert all(fine is None and "kms:CreateGrant" in detail and "VolumeKmsKeyArn" in detail for fine, detail in told.values())


def test_the_doctor_says_where_nothing_will_be_stopped(here):
    here.world.ec2.template_data["t"]["DisableApiStop"] = True
    wrong = {(one["about"], one["detail"]) for one in asked(here, "doctor")["findings"] if one["fine"] is False}
    assert ("cpu", "DisableApiStop must be off: no agent could be stopped (warm_pool)") in wrong
