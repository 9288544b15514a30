"""Hosts through the real handlers: who asks with a host's role is that host, and nothing of EC2 is asked about it."""

import json
from dataclasses import replace

import pytest

from autoscaler import bootstrap
from autoscaler_workbench.fakes.world.hosts import Host
from autoscaler_workbench.simulate.fleets import EXAMPLE_FLEET as EXAMPLE
from support.builders import a_reservation
from support.deployed import deployed_in_memory, event

ROLE = "AROAEXAMPLEID12345678"
POOL = "  rocm: {executors: 2, labels: [gfx1030]}\n"
HOSTS = f"hosts:\n  rocm-1: {{pool: rocm, role_id: {ROLE}, owner: the ROCm team, address: rocm-1.example.org}}\n"


@pytest.fixture
def here(tmp_path):
    file = tmp_path / "fleet.yaml"
    text = EXAMPLE.read_text(encoding="utf-8")
    file.write_text(text.replace("pools:\n", f"pools:\n{POOL}", 1) + HOSTS, encoding="utf-8")
    with deployed_in_memory(file) as stood:
        stood.world.hosts["rocm-1"].on = False  # it asks as the tests say
        stood.world.controllers["main"].submit("job", "utility", 60.0)
        stood.pass_minutes(5)
        yield stood


def ask(here, name="register_agent_host", **said):
    given = event(name)
    body = json.loads(given.get("body", "{}")) | said
    answer = here.call("register_agent", given | {"body": json.dumps(body)})
    return answer["statusCode"], json.loads(answer["body"])


def test_a_host_learns_who_it_is_and_which_user_runs_its_builds(here):
    assert isinstance(here.world.hosts["rocm-1"], Host)
    status, told = ask(here)
    [connection] = told["connections"]
    assert (status, told["node"], told["executors"], told["labels"][0]) == (200, "rocm-1", 2, "gfx1030")
    assert (connection["user"], connection["remote_dir"]) == ("jenkins-main", "/home/jenkins-main/agent")
    assert "rocm-1" in here.world.controllers["main"].nodes
    assert [device.state for device in bootstrap.runtime().ports.state.read().devices["host-rocm-1"].devices] == ["free", "held"]


def test_asked_again_it_is_told_from_its_own_record_alone(here):
    _, told = ask(here)
    key = f"main/rocm-1/{told['connections'][0]['life']}"
    before = len(here.server.requests)
    status, again = ask(here, connected=[key])
    assert (status, "secret" in again["connections"][0], here.server.requests[before:]) == (200, False, [])


def test_another_role_is_no_host_and_another_account_is_refused(here):
    stranger = event("register_agent_host")
    iam = stranger["requestContext"]["authorizer"]["iam"]
    somebody = {"userId": "AROASOMEBODYELSE:x", "userArn": "arn:aws:sts::123456789012:assumed-role/x/x"}
    for changed in (somebody, {"accountId": "210987654321"}):
        given = stranger | {"requestContext": {"authorizer": {"iam": iam | changed}}}
        assert here.call("register_agent", given)["statusCode"] == 403


def test_the_passes_and_the_doctor_ask_ec2_nothing_about_hosts(here):
    ask(here)
    here.pass_minutes(4)
    findings = here.call("operate", event("doctor"))["findings"] + here.call("scale_up", event("doctor"))["findings"]
    assert {finding["about"] for finding in findings if finding["fine"] is False} == set()
    assert not any(finding["about"] == "rocm" for finding in findings)
    assert "DescribeInstances" in dict(here.server.ec2_calls)
    assert not any("host-" in str(call) for call in here.server.ec2_calls)


def test_people_see_it_among_the_agents_with_whose_it_is(here):
    ask(here)
    here.world.controllers["main"].connect("rocm-1")
    here.pass_minutes(1)
    [agent] = [one for one in here.call("operate", event("agents"))["agents"] if one["pool"] == "rocm"]
    assert (agent["node"], agent["instance_type"], agent["usd_per_hour"], agent["note"]) == ("rocm-1", "host", 0.0, "of the ROCm team")


def test_reserved_it_is_handed_back_and_begins_anew(here):
    _, before = ask(here)
    here.world.controllers["main"].connect("rocm-1")
    here.pass_minutes(2)
    order = event("reserve") | {"target": "rocm-1", "hours": 0.5}
    [reservation] = here.call("operate", order)["reservations"]
    assert reservation["get_in"] == "ssh rocm-1.example.org"
    here.pass_minutes(40)
    assert "rocm-1" not in here.world.controllers["main"].nodes
    _, after = ask(here)
    assert after["connections"][0]["life"] == before["connections"][0]["life"] + 1
    assert not here.world.controllers["main"].nodes["rocm-1"].temporarily_offline


def test_who_has_a_device_of_it_keeps_it_though_the_controllers_of_its_pool_are_named_in_another_order(tmp_path):
    file = tmp_path / "fleet.yaml"
    two = 'controllers:\n  release: {url: "http://localhost/", secret: jenkins/release}\n'
    both = POOL.replace("executors: 2", "executors: 2, share: cooperative, controllers: [main, release]")
    text = EXAMPLE.read_text(encoding="utf-8").replace("controllers:\n", two, 1).replace("\npools:\n", f"\npools:\n{both}", 1) + HOSTS
    file.write_text(text, encoding="utf-8")
    with deployed_in_memory(file) as here:
        here.world.hosts["rocm-1"].on = False
        ask(here)
        state, now = bootstrap.runtime().ports.state, here.world.timeline.now
        [record] = [one for one in state.read().records if one.instance_id == "host-rocm-1@main"]
        state.change_record(replace(record, devices_for=(a_reservation(until_at=now + 600.0),)), expected=record.state)
        assert [one["person"] for one in ask(here)[1]["people"]] == ["alice"]
        file.write_text(text.replace("[main, release]", "[release, main]"), encoding="utf-8")
        bootstrap.runtime.cache_clear()
        assert [one["person"] for one in ask(here)[1]["people"]] == ["alice"]
