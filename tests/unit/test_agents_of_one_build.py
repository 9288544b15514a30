"""Agents of one build are not stopped: what the fleet file may say, and what 0.3.0 had stopped."""

import pytest

from autoscaler.config import load_fleet
from autoscaler.domain.facts.fleet import WarmPool
from autoscaler.domain.facts.plan import Launch, Terminate
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import InstanceState, RecordState
from autoscaler.errors import ConfigError
from support.builders import (
    NOW,
    a_fleet,
    a_pool,
    a_record,
    a_snapshot,
    a_view,
    an_instance,
    an_item,
)
from support.decisions import scale_down, scale_up

FILE = """
fleet: f
limits:
  {max_agents: 10, max_launches_per_hour: 10, max_usd_per_hour: 100, max_usd_per_month: 1000}
controllers: {main: {url: "https://jenkins.example.org/"}}
defaults: {%s}
pools:
  cpu: {executors: 1, launch_template: cpu, instance_types: [c5.xlarge], max_agents: 5%s}
  gpu: {executors: 1, launch_template: gpu, instance_types: [c5.xlarge], max_agents: 5}
"""
NIGHT = "schedules: [{from: 22:00, to: 06:00, time_zone: UTC, warm_pool: {min_agents: 3}}]"


def fleet_of(tmp_path, defaults="", pool=""):
    file = tmp_path / "fleet.yaml"
    file.write_text(FILE % (defaults, pool), encoding="utf-8")
    return load_fleet(file)


@pytest.mark.parametrize("warm", ["{}", "{min_agents: 2}"])
def test_the_default_warm_pool_leaves_out_pools_of_agents_of_one_build(tmp_path, warm):
    pools = fleet_of(tmp_path, f"warm_pool: {warm}", ", reuse: never").pools
    assert pools["cpu"].warm_pool is None
    assert isinstance(pools["gpu"].warm_pool, WarmPool)


@pytest.mark.parametrize(
    ("defaults", "pool", "given"),
    [
        ("", ", reuse: never, warm_pool: {}", "{}"),
        ("", ", reuse: never, warm_pool: {min_agents: 2, max_agents: 4}", "{min_agents: 2, max_agents: 4}"),
        ("", ", reuse: never, warm_pool: {max_agents: 4}", "{max_agents: 4}"),
        ("reuse: never", ", warm_pool: {min_agents: 2}", "{min_agents: 2}"),
        ("", f", reuse: never, {NIGHT}", "{min_agents: 3}"),
    ],
)
def test_a_warm_pool_of_agents_of_one_build_is_refused_in_one_line(tmp_path, defaults, pool, given):
    with pytest.raises(ConfigError) as refused:
        fleet_of(tmp_path, defaults, pool)
    rule = "agents that have one build each (reuse: never) are not stopped"
    assert f"warm_pool ({given}): {rule}; leave it out, and give the pool min_agents" in str(refused.value)
    assert str(refused.value).count("warm_pool (") == 1


def test_off_is_allowed_where_each_agent_has_one_build(tmp_path):
    assert fleet_of(tmp_path, "warm_pool: {}", ", reuse: never, warm_pool: off").pools["cpu"].warm_pool is None


# What 0.3.0 had launched to be stopped before its one build.


def left_of_0_3_0(state, instance, items=()):
    record = a_record("i-1", node=None, state=state, launched_at=NOW - 4000.0, changed_at=NOW - 3000.0)
    view = a_view(items=items)
    return a_snapshot(view, records=(record,), instances=(an_instance("i-1", state=instance),))


ONE_BUILD = a_fleet(a_pool("cpu", max_builds=1))


@pytest.mark.parametrize(
    ("state", "instance", "reason"),
    [
        (RecordState.STOPPED, InstanceState.STOPPED, Reason.WARM_POOL_OFF),
        (RecordState.STOPPING, InstanceState.RUNNING, Reason.CONDEMNED),
    ],
)
def test_what_was_stopped_or_was_to_be_is_terminated(state, instance, reason):
    plan = scale_down(left_of_0_3_0(state, instance), ONE_BUILD)
    ended = [(step.instance_id, step.reason) for step in plan.steps if isinstance(step, Terminate)]
    assert ended == [("i-1", reason)]


def test_a_job_gets_a_new_agent_and_not_the_one_that_is_stopped():
    snapshot = left_of_0_3_0(RecordState.STOPPED, InstanceState.STOPPED, items=(an_item(label="cpu"),))
    assert [type(step) for step in scale_up(snapshot, ONE_BUILD).steps] == [Launch]
