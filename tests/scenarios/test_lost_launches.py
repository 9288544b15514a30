"""Time-lines of launches whose answer is lost, where EC2 does not know their token any more: what was launched is found by its tag."""

import pytest

from autoscaler_workbench.fakes.world.faults import Fault
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory


@pytest.fixture
def day():
    day = Day(in_memory(a_pool("cpu", idle_seconds=600.0)))
    day.world.ec2.forgets_tokens = True
    day.fleet.faults.plan(Fault("ec2 CreateFleet", after=True))
    return day


def test_a_launch_that_was_met_in_part_is_settled_by_what_is_listed(day):
    [offering] = day.fleet.fleet.pools["cpu"].offerings
    day.world.ec2.capacity[offering.key] = 2
    day.minutes(2).queue(3)
    day.minutes(1)
    assert len(day.world.ec2.instances) == 2
    day.world.ec2.capacity.clear()
    day.minutes(5)
    assert len(day.world.ec2.instances) == 3
    assert day.fleet.state.intents == {}


def test_what_ec2_does_not_list_yet_is_waited_for_before_anything_is_sent_again(day):
    """The schedule may look every 5 s, and DescribeInstances is up to 30 s late."""
    day.world.ec2.lag_seconds = 30.0
    day.minutes(2).queue(4)
    day.minutes(1)
    assert len(day.world.ec2.instances) == 4
    for _ in range(24):
        day.world.move_to(day.world.timeline.now + 5)
        day.fleet.scale_up()
    assert len(day.world.ec2.instances) == 4
    assert day.fleet.state.intents == {}
