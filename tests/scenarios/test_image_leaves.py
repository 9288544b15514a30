"""Time-lines of agents of an image that a parameter named, once `image_parameter` has left the fleet file: they are replaced."""

import pytest

from autoscaler.domain.facts.fleet import WarmPool
from autoscaler.domain.facts.plan import Cordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from scenarios.test_image_parameter import PARAMETER, a_day, break_images, images, memory, name_image
from support.file_changes import pool_is_now
from support.remembered import tables
from support.warm import starts_proven

HOURS = 60


def without_key(day):
    pool_is_now(day, "cpu", image_parameter="")
    return day


def old(day):
    return images(day).get("ami-1", 0)


def cordoned_as_outdated(day):
    return [step.detail for step in day.done(Cordon) if step.reason is Reason.OUTDATED]


@pytest.mark.long
def test_its_agents_are_replaced_by_agents_of_the_launch_templates_own_image_and_no_build_is_cut_short():
    day = a_day().minutes(10)
    assert images(day) == {"ami-1": 3}
    builds = day.queue(6, seconds=3000.0)
    day.minutes(10)
    without_key(day).minutes(10 * HOURS)
    assert {build.ended for build in builds} == {Ended.FINISHED}
    assert (old(day), len(day.world.alive())) == (0, 3)
    assert set(cordoned_as_outdated(day)) == {"launched from image ami-1, now it is its launch template's own"}
    assert memory(day).proven == {"cpu": "1"}


def test_one_agent_is_tried_first_and_the_old_ones_stay_if_it_does_not_boot():
    day = a_day().minutes(10)
    own = next(iter({instance.image for instance in without_key(a_day()).minutes(10).world.alive()}))
    break_images(day, own)
    without_key(day).minutes(3 * HOURS)
    assert old(day) == 2


def test_why_says_it():
    day = without_key(a_day().minutes(10)).minutes(2)
    lines = day.why("cpu")
    assert any("2 more agents are outdated" in line for line in lines)


def test_agents_of_it_that_are_stopped_go_too():
    kept = WarmPool(min_agents=0, max_agents=5, max_age_seconds=168 * 3600.0)
    day = a_day(min_agents=0, idle_seconds=300.0, warm_pool=kept)
    day.queue(3, seconds=300.0)
    day.minutes(8)
    starts_proven(day, version=tables(day.fleet.state.memory).proven["cpu"]).minutes(32)
    assert old(day) == 3
    without_key(day)
    day.queue(5, seconds=300.0)  # more than are stopped
    day.minutes(3 * HOURS)
    assert old(day) == 0


def test_if_the_key_comes_back_with_the_same_image_its_agents_are_as_they_should_be():
    day = a_day().minutes(10)
    without_key(day)
    day.fleet.scale_up()
    pool_is_now(day, "cpu", image_parameter=PARAMETER)
    day.minutes(2 * HOURS)
    assert (images(day), cordoned_as_outdated(day)) == ({"ami-1": 3}, [])


@pytest.mark.long
def test_agents_that_were_adopted_are_of_the_image_too():
    day = a_day().minutes(10)
    day.fleet.state.records.clear()
    day.minutes(10)
    without_key(day).minutes(10 * HOURS)
    assert old(day) == 0


@pytest.mark.long
def test_a_new_image_that_was_not_proven_yet_is_forgotten():
    day = a_day().minutes(10)
    break_images(day, "ami-2")
    name_image(day, "ami-2")
    day.minutes(20)
    without_key(day).minutes(10 * HOURS)
    assert (images(day).keys() & {"ami-1", "ami-2"}, len(day.world.alive())) == (set(), 3)
