"""Time-lines of a Jenkins that takes minutes to hand out free executors: nothing refuses, nothing more is launched, nobody is told."""

import random
from dataclasses import replace

import pytest

from autoscaler.domain.facts.plan import Cordon
from autoscaler_workbench.fakes.world.physics import CALM
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory

FACTS = {"max_agents": 40, "idle_seconds": 900.0, "queue_maturity_seconds": 0.0, "boot_seconds": 120.0}
MINUTES = 240


def a_day(seconds):
    """Four hours of builds of forty jobs; executors are handed out so many seconds late."""
    physics = replace(CALM, scheduling_seconds=seconds)
    day = Day(in_memory(a_pool("cpu", **FACTS), max_launches_per_hour=1000, physics=physics)).minutes(3)
    draw = random.Random(5)
    for _ in range(MINUTES):
        for _ in range(draw.choice([0, 0, 0, 1, 1, 2])):
            day.jenkins.submit(f"f{draw.randint(0, 3)}/b{draw.randint(0, 9)}", "cpu", draw.choice([120.0, 300.0, 900.0]))
        day.minutes(1)
    return day


@pytest.mark.parametrize("seconds", [300.0, 600.0])
def test_a_jenkins_that_hands_executors_out_minutes_late_gets_about_as_many_agents_as_a_quick_one(seconds):
    quick, slow = a_day(0.0), a_day(seconds)
    # Some are launched before the first hand-outs show how slow it is.
    assert len(slow.world.ec2.instances) <= 1.2 * len(quick.world.ec2.instances) + 6
    assert not [step for step in slow.done(Cordon) if step.reason == "refuses-all"]
    assert not slow.fleet.notifier.sent
