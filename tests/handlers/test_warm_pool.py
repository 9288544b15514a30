"""Agents that are stopped and started again, as the people see them who run the fleet."""

from pathlib import Path

import pytest

from support.deployed import deployed, event

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
def here(tmp_path):
    file = Path(tmp_path) / "fleet.yaml"
    file.write_text(FLEET, encoding="utf-8")
    with deployed(file) as stood:
        stood.call("scale_up", event("tick"))
        yield stood


@pytest.fixture
def stopped(here):
    """The two instances that the fleet file wants stopped; nothing else is there."""
    here.pass_minutes(30)
    found = here.world.alive()
    assert [instance.state for instance in found] == ["stopped", "stopped"]
    return found


def status(here):
    return here.call("operate", event("status"))["status"]


def test_a_stopped_agent_costs_its_disk(here, stopped):
    told = status(here)
    assert told["reserved_usd_per_hour"] == pytest.approx(len(stopped) * DISK_USD_PER_HOUR, abs=1e-3)
