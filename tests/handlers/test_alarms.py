"""Each alarm of the template rings in its condition, by its own definition, on what the handlers really sent; and no other does."""

from datetime import UTC, datetime
from math import inf
from pathlib import Path

import pytest

from autoscaler import bootstrap
from autoscaler_workbench.fakes.world.usage import GIB, Need, Size, Usage
from autoscaler_workbench.fakes.world.world import break_boots
from support.deployed import deployed_in_memory, event
from support.ringing import ringing_in

GPU, CPU = "mxnetlinux-gpu", "mxnetlinux-cpu"
WITH_MEMORY = {"AgentMemoryAlarmBytes": "268435456", "ControllerMemoryAlarmBytes": "536870912"}
LOW_LIMITS = """
fleet: mxnet-ci
limits: {max_agents: 4, max_launches_per_hour: 2, max_usd_per_hour: 8, max_usd_per_month: 12}
controllers: {main: {url: "https://jenkins.example.org/", secret: jenkins/main}}
defaults: {queue_maturity_seconds: 0}
pools:
  mxnetlinux-gpu: {executors: 1, launch_template: t, instance_types: [g4dn.8xlarge], platform: linux, max_agents: 3, usd_per_hour: 3.8}
"""


@pytest.fixture
def poor(tmp_path):
    file = Path(tmp_path) / "fleet.yaml"
    file.write_text(LOW_LIMITS, encoding="utf-8")
    with deployed_in_memory(file) as stood:
        stood.call("scale_up", event("tick"))
        yield stood


def jenkins(here):
    return here.world.controllers["main"]


def submit(here, count=1, label=GPU, seconds=600.0, prefix="job"):
    return [jenkins(here).submit(f"{prefix}-{number}", label, seconds) for number in range(count)]


def an_agent(here, label=GPU, seconds=6 * 3600.0):
    """One agent of a pool, busy."""
    submit(here, 1, label, seconds, prefix="long")
    here.pass_minutes(8)
    return next(node for node in jenkins(here).nodes.values() if node.builds)


def measured_for(here, minutes):
    """Nothing but measured, once in five minutes: quick, and enough for who looks at five minutes together."""
    for _ in range(minutes // 5):
        here.world.move_to(here.world.timeline.now + 300)
        here.call("publish_metrics", {})


def test_a_quiet_day_rings_nothing(here):
    submit(here, 3, seconds=200.0)
    here.pass_minutes(30)
    assert ringing_in(here) == set()


def test_a_queue_item_that_no_pool_serves(here):
    submit(here, 1, "sparc")
    here.pass_minutes(30)
    assert ringing_in(here) == set()
    here.pass_minutes(6)
    assert ringing_in(here) == {"QueueUnservable"}


def test_jobs_that_wait_too_long(here):
    here.call("operate", event("hold") | {"pool": GPU, "minutes": 300})
    submit(here, 2)
    here.pass_minutes(30)
    assert ringing_in(here) == set()
    here.pass_minutes(8)
    assert ringing_in(here) == {"JobWaits"}
    here.call("operate", event("resume") | {"pool": GPU})
    here.pass_minutes(30)
    assert ringing_in(here) == set()


def test_an_agent_that_tells_nothing_and_whose_disk_runs_full(here):
    node = an_agent(here)
    node.monitors.disk_bytes = 2 * 2**30
    here.pass_minutes(6)
    assert ringing_in(here) == {"AgentDiskLow"}
    node.monitors.disk_bytes = 10**11
    here.pass_minutes(2)
    assert ringing_in(here) == set()


@pytest.fixture
def telling(here):
    """Its machines tell what they use."""
    here.world.usage = Usage(here.world.timeline, here.world.controllers, size=Size(gpu_memory=16 * GIB))
    return here


def machine_of(here, node):
    return next(machine.id for machine in here.world.ec2.instances.values() if here.world.node_of(machine) is node)


def test_an_agent_that_tells_of_a_full_disk(telling):
    node = an_agent(telling)
    telling.world.usage.disk_used[machine_of(telling, node)] = 98 * GIB
    telling.pass_minutes(11)
    assert ringing_in(telling) == {"AgentDiskLow"}
    telling.world.usage.disk_used.clear()
    telling.pass_minutes(7)
    assert ringing_in(telling) == set()


def test_a_card_without_memory_rings_where_somebody_asks_for_it(telling):
    telling.world.usage.needs["long-0"] = Need(gpu_memory=15.9 * GIB)
    an_agent(telling)
    telling.pass_minutes(11)
    assert ringing_in(telling) == set()
    assert ringing_in(telling, AgentGpuMemoryAlarmBytes=str(2**28)) == {"AgentGpuMemoryLow"}


def test_a_gigabyte_a_minute_of_leak_rings_before_the_memory_is_used_up(telling):
    machine = machine_of(telling, an_agent(telling))
    began, told = telling.world.timeline.now, []
    telling.world.usage.leaks[machine] = began, GIB / 60.0
    while telling.world.usage.available(machine, ["main/x/0"], telling.world.timeline.now) > 0.5 * GIB and not told:
        telling.pass_minutes(1)
        told = sorted(ringing_in(telling))
    assert told == ["AgentMemoryLow"]
    assert telling.world.usage.available(machine, ["main/x/0"], telling.world.timeline.now) > 1.5 * GIB


@pytest.mark.parametrize(
    ("what", "field", "value"),
    [("ControllerDiskLow", "disk_bytes", 2 * 2**30), ("ControllerMemoryLow", "memory_bytes", 2**20)],
)
def test_a_controller_that_runs_full(here, what, field, value):
    setattr(jenkins(here).monitors, field, value)
    here.pass_minutes(6)
    assert ringing_in(here, **WITH_MEMORY) == {what}


def test_a_healthy_machine_whose_memory_is_its_disk_cache_rings_nothing(here):
    """Jenkins tells MemFree; agents themselves tell what is available. Of the controller only Jenkins tells, so that is off."""
    an_agent(here).monitors.memory_bytes = 2**20
    jenkins(here).monitors.memory_bytes = 2**20
    here.pass_minutes(6)
    assert ringing_in(here) == set()
    assert ringing_in(here, **WITH_MEMORY) == {"ControllerMemoryLow"}


def test_a_controller_that_cannot_be_read(here):
    jenkins(here).up = "starting"
    here.pass_minutes(6)
    assert ringing_in(here) == {"ControllerUnread"}


def test_a_controller_that_answers_slowly(here):
    # Each of the three requests of a look, and of three about queue items.
    here.server.before_answer = lambda: here.world.move_to(here.world.timeline.now + 4.0)
    for minute in range(5):
        assert "ControllerSlow" not in ringing_in(here), minute
        here.call("publish_metrics", {})
        here.world.move_to(here.world.timeline.now + 36.0)
    here.call("publish_metrics", {})
    assert "ControllerSlow" in ringing_in(here)


def test_boots_that_fail(here):
    break_boots(here.world, frozenset({GPU}))
    submit(here, 3, seconds=60.0)
    here.pass_minutes(22)
    assert ringing_in(here) == {"BootFailures", "BreakersOpen"}
    said = " ".join(here.call("operate", event("why") | {"subject": GPU})["facts"])
    assert "boots failed" in said


def test_builds_that_fail_in_a_row_on_one_machine_and_its_quarantine(here):
    here.call("operate", event("set") | {"pool": GPU, "min_agents": 3, "max_agents": 8, "warm_executors": 0, "minutes": 600})
    here.pass_minutes(10)
    broken = next(node for node in jenkins(here).nodes.values() if node.connected and GPU in node.labels)
    broken.fails_builds = True
    rang = set()
    for round_ in range(25):
        submit(here, 2, seconds=70.0, prefix=f"job-{round_}")
        here.pass_minutes(1)
        rang |= ringing_in(here)
    assert rang == {"NodeFailureStreak", "Quarantine"}


def test_a_build_that_does_not_end(here):
    for _ in range(5):
        jenkins(here).submit("short", GPU, 100.0)
        here.pass_minutes(7)
    jenkins(here).submit("short", GPU, 3 * 3600.0)
    here.pass_minutes(20)
    assert ringing_in(here) == set()
    here.pass_minutes(25)
    assert ringing_in(here) == {"BuildsOverdue"}


def test_many_executors_that_nobody_uses(here):
    here.call("operate", event("set") | {"pool": CPU, "min_agents": 14, "max_agents": 20, "warm_executors": 0, "minutes": 600})
    here.pass_minutes(12)
    measured_for(here, 105)
    assert "IdleAgents" not in ringing_in(here)
    measured_for(here, 20)
    assert "IdleAgents" in ringing_in(here)


def test_limits_that_are_used_up_and_money_that_is_spent(poor):
    submit(poor, 5, seconds=4 * 3600.0)
    poor.pass_minutes(5)
    assert ringing_in(poor) == {"LaunchRate"}
    poor.pass_minutes(17)
    assert ringing_in(poor) == {"LaunchRate", "UsdPerHour"}
    poor.pass_minutes(60)
    assert "UsdPerMonth" in ringing_in(poor)
    assert {held["reason"] for held in poor.call("scale_up", {})["held"]} & {"max-usd-per-month", "max-usd-per-hour"}


def test_a_pool_at_its_limit(here):
    here.call("operate", event("set") | {"pool": GPU, "min_agents": 0, "max_agents": 1, "warm_executors": 0, "minutes": 600})
    submit(here, 2, seconds=3600.0)
    here.pass_minutes(22)
    assert ringing_in(here) == {"AgentsLimit"}


def test_a_lease_that_somebody_else_holds(here):
    now, lease = here.world.timeline.now, bootstrap.runtime().ports.lease
    assert lease.acquire("another", now=now, until=now + 180.0)
    for minute in range(1, 13):
        here.world.move_to(now + minute * 60)
        assert lease.acquire("another", now=now + minute * 60, until=now + minute * 60 + 180.0)
        tick = event("tick") | {"time": datetime.fromtimestamp(here.world.timeline.now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
        for function in ("publish_metrics", "scale_up", "scale_down"):
            here.call(function, tick)
    assert ringing_in(here) == {"AutoscalerDown", "LeaseHeld"}


@pytest.mark.parametrize("function", ["publish_metrics", "scale_up", "scale_down"])
def test_a_function_that_does_not_run_any_more(here, function):
    others = {"publish_metrics", "scale_up", "scale_down"} - {function}
    here.pass_minutes(1)
    for minute in range(5):
        assert ringing_in(here) == set(), minute
        here.world.move_to(here.world.timeline.now + 60)
        for name in sorted(others):
            here.call(name, {})
    assert ringing_in(here) == {"AutoscalerDown"}


def test_an_instance_that_may_not_be_terminated(here):
    an_agent(here, seconds=400.0)
    [instance] = [one for one in here.world.alive() if one.tags["autoscaler:pool"] == GPU]
    instance.protected = True
    here.pass_minutes(30)
    assert ringing_in(here) == {"AgentsStuck"}


def test_a_right_that_is_missing_so_that_the_same_step_fails_again_and_again(here):
    here.server.jenkins["main"].lacks.add("hudson.model.Computer.Delete")
    here.call("operate", event("set") | {"pool": GPU, "min_agents": 0, "warm_executors": 0, "minutes": 600})
    here.call("scale_down", {"nodes": [an_agent(here, seconds=400.0).name], "reason": "to be gone"})
    here.pass_minutes(12)
    assert ringing_in(here) == {"StepsFailing"}
    [said] = here.call("operate", event("status"))["status"]["failing"]
    assert said.startswith(f"delete-node main/{GPU}")
    assert "lacks hudson.model.Computer.Delete" in said


def test_a_controller_whose_jobs_are_hidden(here):
    submit(here, 1, seconds=100.0)
    here.pass_minutes(8)
    here.server.jenkins["main"].lacks.add("hudson.model.Item.Read")
    measured_for(here, 55)
    assert "ControllersWithoutJobs" not in ringing_in(here)
    measured_for(here, 15)
    assert "ControllersWithoutJobs" in ringing_in(here)


def test_an_item_of_the_state_that_this_version_cannot_read(here):
    here.state.unreadable.add("record#i-0123456789abcdef0")
    submit(here, 1, seconds=100.0)
    here.pass_minutes(8)
    assert ringing_in(here) == {"StateUnread"}
    assert list(here.call("operate", event("status"))["status"]["unread"]) == ["record#i-0123456789abcdef0"]
    assert [build.succeeded for build in jenkins(here).builds] == [True]


def test_a_drain_that_takes_longer_than_it_should(tmp_path):
    file = Path(tmp_path) / "fleet.yaml"
    file.write_text(LOW_LIMITS.replace("executors: 1,", "executors: 1, drain_timeout_seconds: 600,"), encoding="utf-8")
    with deployed_in_memory(file) as here:
        here.call("scale_up", event("tick"))
        node = an_agent(here)
        here.call("scale_down", {"nodes": [node.name], "reason": "to be slow"})
        here.pass_minutes(10)
        assert "DrainsOverdue" not in ringing_in(here)
        here.pass_minutes(3)
        assert "DrainsOverdue" in ringing_in(here)
        assert node.builds  # an alarm, never a kill


def test_ec2_shows_nothing_of_agents_that_are_connected(here):
    here.call("operate", event("set") | {"pool": CPU, "min_agents": 6, "max_agents": 20, "warm_executors": 0, "minutes": 600})
    here.pass_minutes(10)
    for instance in here.world.ec2.instances.values():
        instance.visible_at = inf
    here.pass_minutes(6)
    assert ringing_in(here) == {"Ec2Disagrees"}
    for instance in here.world.ec2.instances.values():
        instance.visible_at = 0.0
    here.pass_minutes(10)
    assert ringing_in(here) == set()


def test_more_to_repair_than_may_be_repaired_at_once(here):
    here.call("operate", event("set") | {"pool": CPU, "min_agents": 12, "max_agents": 20, "warm_executors": 0, "minutes": 600})
    here.pass_minutes(10)
    assert ringing_in(here) == set()
    for name in [name for name in jenkins(here).nodes if name.startswith(CPU)]:
        jenkins(here).delete_node(name)  # somebody cleared Jenkins' nodes: what is left in EC2 is of no use, and much at once
    here.pass_minutes(4)
    assert ringing_in(here) == {"SweepsStopped"}
    here.pass_minutes(10)
    assert ringing_in(here) == set()
