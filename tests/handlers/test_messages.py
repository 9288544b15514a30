"""The real publish_metrics tells people of a pool that does not boot, and goes on measuring where it cannot."""

from autoscaler_workbench.fakes.world.faults import Fault
from autoscaler_workbench.fakes.world.world import break_boots
from support.deployed import deployed_in_memory

GPU = "mxnetlinux-gpu"


def test_people_are_told_once_of_a_pool_that_does_not_boot():
    with deployed_in_memory() as here:
        break_boots(here.world, frozenset({GPU}))
        here.pass_minutes(3)
        for number in range(3):
            here.world.controllers["main"].submit(f"job-{number}", GPU, 600.0)
        here.pass_minutes(40)
        [(subject, text)] = here.told()
        assert subject == f"[mxnet-ci] agents of {GPU} do not boot"
        assert "dracut: FATAL: no root device found" in text
        assert "docs/operations.md#breakers-open" in text


def test_a_topic_that_is_gone_costs_no_metric():
    with deployed_in_memory() as here:
        here.stored.notifier.faults.plan(Fault("sns Publish", times=99, status=404, code="NotFound"))
        break_boots(here.world, frozenset({GPU}))
        here.pass_minutes(3)
        for number in range(3):
            here.world.controllers["main"].submit(f"job-{number}", GPU, 600.0)
        here.pass_minutes(30)
        assert here.call("publish_metrics", {})["metrics"] > 10
        assert "message_failed" in dict(here.logged)
