"""The real handlers, real sockets and the real SDK: a launch whose answer is lost is one launch."""

import pytest

from autoscaler_workbench.fakes.world.faults import Fault
from support.deployed import deployed

JOBS = 4


@pytest.fixture
def here():
    with deployed() as running:
        jenkins = next(iter(running.world.controllers.values()))
        running.pass_minutes(2)
        for number in range(JOBS):
            jenkins.submit(f"job-{number}", "mxnetlinux-gpu", 1800.0)
        yield running


def launched(here):
    """All that was ever launched for the jobs; the pool for lifecycle steps has an agent of its own."""
    return [instance for instance in here.world.ec2.instances.values() if instance.tags["autoscaler:pool"] == "mxnetlinux-gpu"]


def test_a_launch_whose_answer_is_lost_and_whose_repetition_is_throttled_launches_once(here):
    here.server.ec2.faults.plan(Fault("ec2 CreateFleet", after=True))
    here.server.ec2.faults.plan(Fault("ec2 CreateFleet", status=503, code="RequestLimitExceeded"))
    here.pass_minutes(6)
    assert len(launched(here)) == JOBS


def test_the_sdk_does_not_send_a_launch_again_by_itself(here):
    here.server.ec2.faults.plan(Fault("ec2 CreateFleet", status=503, code="RequestLimitExceeded"))
    here.world.move_to(here.world.timeline.now + 180)
    [step] = here.call("scale_up", {})["steps"]
    assert (step["step"], step["outcome"]) == ("launch", "failed")
    assert here.server.ec2.faults.seen == ["ec2 CreateFleet before 503"]
    assert launched(here) == []
