"""Time-lines of deployments: a launch template gets new versions, good ones and broken ones, and is put back."""

from collections import Counter
from dataclasses import replace

import pytest

from autoscaler.domain.facts.plan import Launch
from support.builders import a_pool
from support.remembered import tables
from support.timeline import Day
from support.worlds import in_memory

STACKS_OWN = "autoscaler-linux-f"
VERSION = "aws:ec2launchtemplate:version"


def a_day(template=STACKS_OWN, version="$Latest", **facts):
    told = {"idle_seconds": 7200.0, "boot_timeout_seconds": 300.0, "min_agents": 3, "max_agents": 12} | facts
    return Day(in_memory(a_pool("cpu", launch_template=template, launch_template_version=version, **told)))


def break_version(day, *broken):
    """Instances of these versions run, and nothing on them ever asks who it is."""
    sound = day.world.ec2.on_running
    day.world.ec2.on_running = lambda instance: None if instance.tags[VERSION] in broken else sound(instance)


def versions(day):
    return dict(Counter(instance.tags[VERSION] for instance in day.world.alive()))


def failed_boots(day):
    return sum(len(report.plan.boot_failures) for report in day.fleet.reports)


def test_what_a_deployment_changes_reaches_the_agents_and_one_is_tried_first():
    day = a_day().minutes(10)
    assert versions(day) == {"1": 3}
    day.world.ec2.deploy(STACKS_OWN)
    day.minutes(3)
    assert versions(day).get("2", 0) <= 1
    day.minutes(4 * 60)
    assert versions(day) == {"2": 3}
    assert tables(day.fleet.state.memory).proven == {"cpu": "2"}


def test_a_broken_version_takes_one_agent_and_what_is_put_back_is_launched_at_once():
    """The breaker of the broken version, ten minutes by then, does not hold back the one that follows it."""
    day = a_day().minutes(10)
    day.world.ec2.deploy(STACKS_OWN)
    day.minutes(4 * 60)
    break_version(day, "3")
    day.world.ec2.deploy(STACKS_OWN)
    day.minutes(5 * 60)
    assert versions(day)["2"] == 2
    assert day.fleet.state.memory.trials["boot/cpu"].failures >= 5
    builds = day.queue(6, seconds=1200.0)
    day.world.ec2.deploy(STACKS_OWN)  # as version 2 was
    day.minutes(15)
    assert versions(day).get("4", 0) >= 1
    assert "boot/cpu" not in day.fleet.state.memory.trials
    day.minutes(4 * 60)
    assert versions(day) == {"4": 3}
    assert all(build.ended for build in builds)


def test_a_default_that_is_moved_back_needs_no_trial():
    """A template of one's own: the version that was proven before is launched as many times as jobs need."""
    day = a_day("mine", "$Default").minutes(10)
    break_version(day, "2")
    day.world.ec2.template_versions["mine"] = 2
    day.minutes(3 * 60)
    while day.fleet.state.memory.trials["boot/cpu"].until_at < day.world.timeline.now + 400.0:
        day.minutes(1)
    day.world.ec2.template_versions["mine"] = 1
    day.queue(9, seconds=3600.0)
    day.minutes(4)
    assert versions(day)["1"] >= 6


def test_an_agent_of_the_broken_version_that_dies_later_does_not_count_against_the_next_one():
    day = a_day(min_agents=0, max_agents=1).minutes(2)
    day.queue(1)
    day.minutes(8)
    break_version(day, "2")
    day.world.ec2.deploy(STACKS_OWN)
    day.minutes(4 * 60)
    day.queue(1, seconds=60.0)
    while "2" not in versions(day):
        day.minutes(1)
    failures = failed_boots(day)
    day.world.ec2.deploy(STACKS_OWN)
    day.minutes(8)
    assert failed_boots(day) == failures + 1
    assert day.fleet.state.memory.trials.get("boot/cpu") is None or day.fleet.state.memory.trials["boot/cpu"].failures == 0


@pytest.mark.long
def test_a_job_that_only_the_outdated_agent_can_take_does_not_wait_for_a_launch_that_is_refused_for_a_day():
    """Of a label that one node has Jenkins names the node, and an agent that an item names is not terminated."""
    day = a_day("mine", min_agents=0).minutes(2)
    [first] = day.queue(1, seconds=1200.0)
    day.minutes(8)
    day.world.ec2.template_versions["mine"] = 2
    day.world.ec2.refuse = "UnsupportedOperation", "refused"
    day.minutes(2)
    [second] = day.queue(1, seconds=300.0)
    while first.ended is None:
        day.minutes(1)
    day.minutes(7)
    assert second.ended
    day.world.ec2.refuse = None
    day.minutes(26 * 60)
    assert day.agents() == 0


def test_what_was_decided_on_is_launched_though_the_template_changes_meanwhile():
    day = a_day(min_agents=0).minutes(3)
    [launch] = [step for report in _asked(day) for step in report if isinstance(step, Launch)]
    assert launch.template_version == "1"
    day.world.ec2.deploy(STACKS_OWN)
    day.fleet.ports.compute.launch(day.fleet.ports.compute.compose(launch, "by-hand"))
    day.fleet.ports.compute.launch(day.fleet.ports.compute.compose(replace(launch, template_version=""), "without-a-number"))
    assert versions(day)["1"] >= 2
    assert versions(day)["2"] == 1


def _asked(day):
    day.queue(1)
    day.minutes(1)
    return [[result.step for result in report.results] for report in day.fleet.reports]
