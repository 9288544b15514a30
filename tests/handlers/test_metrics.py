"""What CloudWatch hears of a pass."""

import pytest

from autoscaler_workbench.fakes.world.usage import Size, Usage
from support.deployed import NOON, deployed_in_memory, event


@pytest.fixture
def here():
    with deployed_in_memory() as stood:
        yield stood


def published(here):
    return {(datum.name, datum.dimensions) for _, datum in here.metrics}


def value_of(here, name, **dimensions):
    """The largest value that was sent of a metric."""
    asked = set(dimensions.items())
    return max(value for _, datum in here.metrics if datum.name == name and set(datum.dimensions) == asked for value in datum.values)


def test_a_waiting_queue_is_published_by_pool_and_for_the_fleet(here):
    here.call("scale_up", event("tick"))
    for number in range(3):
        here.world.controllers["main"].submit(f"job-{number}", "mxnetlinux-gpu", 60.0)
    here.world.controllers["main"].submit("odd", "sparc", 60.0)
    here.world.move_to(NOON + 45)
    answer = here.call("publish_metrics", event("tick"))
    pool = {"Fleet": "mxnet-ci", "Controller": "main", "Pool": "mxnetlinux-gpu"}
    assert answer["metrics"] > 20
    assert value_of(here, "QueueStarved", **pool) == 3
    assert value_of(here, "QueueWait", **pool) == 45
    assert value_of(here, "QueueStarved", Fleet="mxnet-ci") == 3
    assert value_of(here, "QueueLength", Fleet="mxnet-ci", Controller="main") == 4
    assert value_of(here, "AgentsRequested", Fleet="mxnet-ci") == 1
    assert value_of(here, "Heartbeat", Fleet="mxnet-ci", Function="publish_metrics") == 1


def test_a_day_at_work_publishes_what_the_design_lists(here):
    jenkins = here.world.controllers["main"]
    here.world.usage = Usage(here.world.timeline, here.world.controllers, size=Size(gpu_memory=16.0 * 2**30))
    for number in range(6):
        jenkins.submit(f"job-{number}", "mxnetlinux-gpu", 400.0)
    here.pass_minutes(14)
    names = {name for name, _ in published(here)}
    assert names >= {
        *("QueueLength", "QueueStarved", "QueueWait", "JobWaitSeconds"),
        *("ExecutorsTotal", "ExecutorsBusy", "ExecutorsFree", "AgentsOnline", "AgentsBooting", "AgentsDraining"),
        *("AgentsOffline", "AgentsRequested", "RemainingSeconds", "RemainingPercent", "BuildsSucceeded"),
        *("ControllerResponseSeconds", "ControllerDiskFreeBytes", "ControllerMemoryFreeBytes", "Launches", "BootSeconds"),
        *("AgentDiskFreeBytes", "AgentMemoryAvailableBytes", "AgentGpuMemoryFreeBytes", "AgentResponseSeconds", "UsdPerHour", "UsdMonth"),
        *("AgentsLimitUsedPercent", "LaunchRateUsedPercent", "UsdPerHourUsedPercent", "UsdMonthUsedPercent", "Heartbeat"),
    }


def test_what_is_none_costs_nothing(here):
    here.pass_minutes(6)
    told = {name for name, dimensions in published(here) if len(dimensions) == 1}
    assert not told & {"QueueUnservable", "BuildsOverdue", "NodeFailureStreak", "Terminations", "BootFailures", "LeaseHeld", "HoldsActive"}
    pools = {dict(dimensions)["Pool"] for _, dimensions in published(here) if "Pool" in dict(dimensions)}
    assert pools == {"utility"}  # the only one that has an agent


def test_a_boot_is_measured_once_though_nothing_else_happens(here):
    here.pass_minutes(12)
    sent = [value for _, datum in here.metrics if datum.name == "BootSeconds" and len(datum.dimensions) > 1 for value in datum.values]
    assert len(sent) == len(here.world.alive()) == 1


def test_the_heartbeat_beats_only_when_a_pass_was_completed(here):
    here.world.move_to(NOON + 200)
    here.call("scale_down", event("tick"))
    assert "Heartbeat" not in {name for name, _ in published(here)}
    here.call("scale_down", {})
    assert "Heartbeat" in {name for name, _ in published(here)}


def test_a_controller_that_is_down_still_lets_the_rest_be_measured(here):
    here.world.controllers["main"].up = "starting"
    here.call("publish_metrics", event("tick"))
    names = {name for name, _ in published(here)}
    assert "QueueLength" not in names
    assert {"Heartbeat", "UsdPerHour", "ControllerResponseSeconds"} <= names
