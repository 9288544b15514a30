"""The machine of a controller tells what it uses: it is known by its role, connected to nothing, and watched by what it says."""

import json
from pathlib import Path

import pytest

from autoscaler import bootstrap
from autoscaler.config import load_settings
from autoscaler.domain.report.registration import MAX_REQUESTS_PER_HOUR
from autoscaler.errors import ConfigError
from support.deployed import deployed_in_memory, event
from support.ringing import ringing_in

FLEET = """
fleet: mxnet-ci
limits: {max_agents: 4, max_launches_per_hour: 4, max_usd_per_hour: 8, max_usd_per_month: 1000}
controllers: {main: {url: "https://jenkins.example.org/", secret: jenkins/main, host_role_id: AROAEXAMPLEIDMASTER12}}
pools:
  cpu: {executors: 1, launch_template: t, instance_types: [m7i.large], platform: linux, max_agents: 3, usd_per_hour: 0.1}
"""
WATCHED = {"ControllerMemoryAlarmBytes": str(2**30)}


def a_file(directory, text=FLEET):
    file = Path(directory) / "fleet.yaml"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.fixture
def here(tmp_path):
    with deployed_in_memory(a_file(tmp_path)) as stood:
        yield stood


def tell(here, **facts):
    sample = event("register_agent_controller")
    body = json.loads(sample["body"])
    body["telemetry"] |= facts
    answer = here.call("register_agent", sample | {"body": json.dumps(body)})
    return answer["statusCode"], json.loads(answer["body"])


def test_it_is_heard_and_connected_to_nothing(here):
    before, nodes = bootstrap.runtime().ports.state.read(), set(here.world.controllers["main"].nodes)
    assert tell(here) == (200, {"controller": "main", "connections": [], "poll_seconds": 300})
    assert bootstrap.runtime().ports.state.read() == before
    assert set(here.world.controllers["main"].nodes) == nodes
    assert here.world.ec2.instances == {}
    assert list(bootstrap.runtime().ports.telemetry.latest()) == ["controller-main"]


def test_another_account_is_refused_and_so_is_who_asks_too_often(here):
    stranger = event("register_agent_controller")
    stranger["requestContext"]["authorizer"]["iam"] |= {"accountId": "210987654321"}
    assert here.call("register_agent", stranger)["statusCode"] == 403
    for _ in range(MAX_REQUESTS_PER_HOUR):
        tell(here)
    assert tell(here)[0] == 429


@pytest.mark.parametrize(
    ("facts", "rings"),
    [
        ({}, set()),
        ({"memory_available": 5e8}, {"ControllerMemoryLow"}),
        ({"memory_ahead": 0.0}, {"ControllerMemoryLow"}),
        ({"root_free": 2**30}, {"ControllerDiskLow"}),
        ({"cpu_mean": 7.9}, {"ControllerBusy"}),
    ],
    ids=["well", "memory", "falling", "disk", "processors"],
)
def test_what_it_tells_is_what_alarms_of_its_memory_disk_and_processors_go_by(here, facts, rings):
    """Jenkins says that nearly no memory is free there, as on any healthy machine."""
    here.world.controllers["main"].monitors.memory_bytes = 2**20
    for _ in range(8):
        tell(here, **facts)
        here.pass_minutes(2)
    assert ringing_in(here, **WATCHED) & {"ControllerMemoryLow", "ControllerDiskLow", "ControllerBusy"} == rings


def test_what_it_told_long_ago_says_nothing_of_now(here):
    tell(here, root_free=2**30, memory_available=1.0, cpu_mean=8.0)
    here.pass_minutes(25)
    assert ringing_in(here) & {"ControllerMemoryLow", "ControllerDiskLow", "ControllerBusy"} == set()


@pytest.mark.parametrize(
    ("role", "line"),
    [("jenkins", "controllers.main.host_role_id"), ("AROAEXAMPLEIDROCM123", "host rocm-1 has the same role")],
)
def test_a_role_that_is_none_or_somebody_else_s_is_refused(tmp_path, role, line):
    host = """
hosts: {rocm-1: {pool: rocm, role_id: AROAEXAMPLEIDROCM123}}
"""
    text = FLEET.replace("AROAEXAMPLEIDMASTER12", role).replace("pools:\n", "pools:\n  rocm: {executors: 1, platform: linux}\n") + host
    with pytest.raises(ConfigError, match=line):
        load_settings(a_file(tmp_path, text)).domain()
