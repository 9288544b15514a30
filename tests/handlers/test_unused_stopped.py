"""Agents of one build that are stopped before it: what an instance is answered that has booted for that, and what people see."""

import json
from pathlib import Path

import pytest

from autoscaler_workbench.cli import answers
from autoscaler_workbench.fakes.identity import function_url_event
from support.deployed import deployed_in_memory, event

FLEET = """
fleet: mxnet-ci
limits: {max_agents: 40, max_launches_per_hour: 60, max_usd_per_hour: 80, max_usd_per_month: 12000}
controllers: {main: {url: "https://jenkins.example.org/", secret: jenkins/main}}
defaults: {queue_maturity_seconds: 0}
pools:
  cpu: {executors: 1, launch_template: t, instance_types: [c5.xlarge], max_agents: 6, usd_per_hour: 0.2,
        reuse: never, warm_pool: {min_agents: 1}}
"""


@pytest.fixture
def here(tmp_path):
    file = Path(tmp_path) / "fleet.yaml"
    file.write_text(FLEET, encoding="utf-8")
    with deployed_in_memory(file) as stood:
        yield stood


@pytest.fixture
def booted(here):
    """The instance that was launched to be stopped, as it is about to ask who it is."""
    asks, here.world.ec2.on_running = here.world.ec2.on_running, lambda _instance: None
    here.call("scale_up", event("tick"))
    [only] = here.world.ec2.instances.values()
    here.world.move_to(here.world.timeline.now + 100)
    here.world.ec2.on_running = asks
    return only


def ask(here, instance):
    answer = here.call("register_agent", function_url_event(instance.id))
    return answer["statusCode"], json.loads(answer["body"])["message"], answer["headers"].get("Retry-After")


def asked(here, action, **facts):
    return here.call("operate", event(action) | facts)


def nodes(here):
    return [name for name in here.world.controllers["main"].nodes if not name.startswith("autoscaler-beacon")]


def phases(here):
    return [one["phase"] for one in asked(here, "agents")["agents"]]


def test_what_was_launched_to_be_stopped_gets_no_node_when_it_asks_and_is_stopped_by_the_next_pass(here, booted):
    assert phases(here) == ["to-stop"]
    status, message, retry_after = ask(here, booted)
    assert (status, retry_after) == (425, "15")
    assert message == "it has booted, and is stopped until it is needed: it asks again once it is started"
    assert ask(here, booted)[0] == 425
    assert (nodes(here), phases(here)) == ([], ["stopping"])
    steps = here.call("scale_down", {})["steps"]
    assert [(step["step"], step["outcome"]) for step in steps] == [("stop", "done")]
    here.pass_minutes(4)
    assert (booted.state, nodes(here), phases(here)) == ("stopped", [], ["stopped"])


def test_it_becomes_an_agent_once_it_is_started_for_a_job(here):
    here.pass_minutes(12)
    [instance] = here.world.alive()
    assert (instance.state, nodes(here)) == ("stopped", [])
    build = here.world.controllers["main"].submit("job", "cpu", 900.0)
    here.pass_minutes(4)
    assert (build.node, build.started_at is not None) == (f"cpu-{instance.id.removeprefix('i-')}", True)
    assert sorted(phases(here)) == ["draining", "to-stop"], "it takes no other build, and the next one boots to be stopped"


def test_the_plan_says_that_what_is_launched_is_to_be_stopped(here, capsys):
    told = asked(here, "plan")
    launch = next(step for step in told["plan"]["steps"] if step["step"] == "launch")
    assert (launch["reason"], launch["count"]) == ("fills-warm-pool", 1)
    answers.print_plan(told)
    assert "0 of 1 agents are stopped, or will be; it is stopped once it has booted, before any build" in capsys.readouterr().out


def test_status_and_metrics_count_it_as_an_agent_that_boots_and_then_as_stopped(here, booted):
    here.call("publish_metrics", {})
    [pool] = asked(here, "status")["status"]["pools"]
    assert (pool["agents"], pool["off"]["count"], pool["off"]["at_least"]) == ({"to-stop": 1}, 0, 1)
    mine = {"Fleet": "mxnet-ci", "Controller": "main", "Pool": "cpu"}
    sent = [datum.values for _, datum in here.metrics if datum.name == "AgentsBooting" and dict(datum.dimensions) == mine]
    assert list(sent[-1]) == [1]
    ask(here, booted)
    here.pass_minutes(5)
    [pool] = asked(here, "status")["status"]["pools"]
    assert (pool["agents"], pool["off"]["count"]) == ({}, 1)
