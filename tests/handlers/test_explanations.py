"""What is said of a cause holds: no deadline that does not hold, no busy executors while nothing can be launched."""

from contextlib import suppress

import pytest

from autoscaler.errors import AutoscalerError
from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.simulate.replay import Replay
from autoscaler_workbench.simulate.traces import MXNET, MXNET_DAY, load_trace
from support.deployed import deployed_in_memory
from support.scene import one_pool, scene


@pytest.mark.parametrize("keys", ["min_agents: 1, idle_seconds: 300", "warm_executors: 1, idle_seconds: 300", "idle_seconds: 3600", ""])
def test_why_names_no_deadline_of_an_idle_agent_that_does_not_hold(keys):
    with scene(one_pool(keys)) as here:
        here.minutes(2)
        here.submit("app", "cpu", 2)
        here.minutes(14)
        [node] = here.ready("cpu")
        facts = here.order("why", subject=node.name)["facts"]
        assert not any("deadline" in fact or "at the latest" in fact for fact in facts)
        assert len([fact for fact in facts if fact.startswith("kept: idle for ")]) == 1


def test_jobs_that_wait_while_ec2_cannot_be_read_are_told_so_and_not_of_busy_executors():
    with scene(one_pool("max_wait_seconds: 600")) as here:
        here.submit("long", "cpu", 600)
        here.minutes(5)
        here.submit("next", "cpu", 5)
        here.here.server.ec2.faults.plan(Fault("ec2 DescribeInstances", status=500, times=10_000))
        for _ in range(25):
            with suppress(AutoscalerError):
                here.minutes(1)
        waits = [subject for subject in here.subjects() if subject.startswith("jobs on main wait")]
        assert waits == ["jobs on main wait: no pass is completed"]


def test_a_replayed_jenkins_has_its_jobs_before_their_first_build():
    with deployed_in_memory() as here:
        Replay(load_trace(MXNET, hours=1.0, start_at=MXNET_DAY), here.world.controllers["main"])
        assert here.call("operate", {"action": "status"})["status"]["without_jobs"] == ()
