"""`end` in the deployed functions: an instance of a controller that left the fleet file, and every other one."""

import pytest

from autoscaler import bootstrap
from support.deployed import deployed_in_memory, event

ONE_CONTROLLER = """
fleet: f
limits: {max_agents: 10, max_launches_per_hour: 20, max_usd_per_hour: 100, max_usd_per_month: 10000}
defaults: {boot_seconds: 60, volume_gib: 0, max_wait_seconds: 60}
pools:
  cpu: {executors: 1, launch_template: t, instance_types: [c5.xlarge], usd_per_hour: 1, max_agents: 6, controllers: [main]}
  web: {executors: 1, launch_template: t, instance_types: [c5.xlarge], usd_per_hour: 1, max_agents: 6, controllers: [CONTROLLER]}
controllers:
  main: {url: https://jenkins.example.org/}
"""
BOTH = f"{ONE_CONTROLLER.replace('CONTROLLER', 'other')}  other: {{url: https://other.example.org/}}\n"


@pytest.fixture
def here(tmp_path):
    """An agent of cpu on main, and one of web on other, which then leaves the fleet file."""
    file = tmp_path / "fleet.yaml"
    file.write_text(BOTH, encoding="utf-8")
    with deployed_in_memory(file) as deployed:
        for controller, label in (("main", "cpu"), ("other", "web")):
            deployed.world.controllers[controller].submit("page", label, 7200.0)
        deployed.pass_minutes(12)
        file.write_text(ONE_CONTROLLER.replace("CONTROLLER", "main"), encoding="utf-8")
        deployed.start_cold()
        deployed.pass_minutes(5)
        yield deployed


def of_pool(here, pool):
    [instance] = [instance for instance in here.world.alive() if instance.tags["autoscaler:pool"] == pool]
    return instance


def end(here, target):
    return here.call("operate", event("end") | {"target": target})


def test_what_nobody_sees_any_more_is_ended_by_its_id_and_its_record_is_closed(here):
    instance = of_pool(here, "web")
    plan = end(here, instance.id)["plan"]
    [step] = plan["steps"]
    assert (step["step"], step["reason"], step["outcome"]) == ("terminate", "manual", "done")
    here.pass_minutes(10)
    assert not instance.alive()
    assert [record.pool for record in bootstrap.runtime().ports.state.read().records] == ["cpu"]


def test_an_agent_whose_controller_is_in_the_file_is_not_ended_and_drain_is_named(here):
    instance = of_pool(here, "cpu")
    plan = end(here, instance.id)["plan"]
    assert plan["steps"] == []
    [held] = plan["held"]
    assert held["reason"] == "still-seen"
    assert "autoscaler drain" in held["detail"]
    assert instance.alive()


SHARED = """
fleet: f
limits: {max_agents: 10, max_launches_per_hour: 20, max_usd_per_hour: 100, max_usd_per_month: 10000}
defaults: {boot_seconds: 60, volume_gib: 0, max_wait_seconds: 60}
pools:
  gpu: {executors: 2, launch_template: t, instance_types: [c5.xlarge], usd_per_hour: 1, max_agents: 1, SERVES}
controllers:
  main: {url: https://jenkins.example.org/}
"""
ALONE = SHARED.replace("SERVES", "controllers: [main]")
TOGETHER = f"{SHARED.replace('SERVES', 'controllers: [main, other], share: cooperative')}  other: {{url: https://other.example.org/}}\n"


@pytest.fixture
def shared(tmp_path):
    """A machine that served two controllers at once, of which other leaves the fleet file while builds run on both."""
    file = tmp_path / "fleet.yaml"
    file.write_text(TOGETHER, encoding="utf-8")
    with deployed_in_memory(file) as deployed:
        builds = [deployed.world.controllers[name].submit("page", "gpu", 1800.0) for name in ("main", "other")]
        deployed.pass_minutes(10)
        assert all(build.started_at for build in builds)
        file.write_text(ALONE, encoding="utf-8")
        deployed.start_cold()
        deployed.pass_minutes(5)
        yield deployed, *builds


def records():
    return sorted(record.instance_id for record in bootstrap.runtime().ports.state.read().records)


def test_a_machine_that_controllers_shared_stays_until_a_person_ends_it(shared):
    here, mine, unseen = shared
    instance = of_pool(here, "gpu")
    here.pass_minutes(60)
    assert (mine.killed_by, unseen.killed_by, instance.alive()) == ("", "", True)
    plan = end(here, instance.id)["plan"]
    assert [(step["step"], step["reason"], step["outcome"]) for step in plan["steps"]] == [("terminate", "manual", "done")]
    here.pass_minutes(10)
    assert (instance.alive(), records()) == (False, [])


def test_while_a_build_runs_on_a_side_that_is_seen_it_is_not_ended_and_drain_is_named(shared):
    here, mine, _ = shared
    instance = of_pool(here, "gpu")
    plan = end(here, instance.id)["plan"]
    assert (plan["steps"], [held["reason"] for held in plan["held"]]) == ([], ["used-elsewhere"])
    assert "autoscaler drain" in plan["held"][0]["detail"]
    here.pass_minutes(10)
    assert (mine.ended, mine.killed_by, instance.alive()) == (None, "", True)


def test_a_machine_whose_controllers_are_all_in_the_file_is_not_ended_on_any_side(tmp_path):
    file = tmp_path / "fleet.yaml"
    file.write_text(TOGETHER, encoding="utf-8")
    with deployed_in_memory(file) as here:
        here.world.controllers["main"].submit("page", "gpu", 1800.0)
        here.pass_minutes(10)
        instance = of_pool(here, "gpu")
        plan = end(here, instance.id)["plan"]
        assert (plan["steps"], [held["reason"] for held in plan["held"]]) == ([], ["still-seen"])
        assert instance.alive()
