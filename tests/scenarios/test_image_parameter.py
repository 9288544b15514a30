"""Time-lines of images: a pool takes its image from a parameter, which names a new one, good or broken."""

from collections import Counter
from statistics import median

import pytest

from autoscaler.domain.facts.fleet import WarmPool
from autoscaler.domain.facts.plan import Launch, Start
from autoscaler.domain.facts.reasons import Reason
from autoscaler_workbench.fakes.world.ec2.account import image_of
from autoscaler_workbench.fakes.world.faults import Fault
from support.builders import a_pool
from support.timeline import Day
from support.worlds import in_memory

PARAMETER = "/ci/linux-image"


def a_day(image="ami-1", **facts):
    told = {"idle_seconds": 7200.0, "boot_timeout_seconds": 300.0, "min_agents": 3, "max_agents": 30} | facts
    day = Day(in_memory(a_pool("cpu", image_parameter=PARAMETER, **told), max_agents=40))
    name_image(day, image)
    return day


def name_image(day, image):
    """Let whoever makes images publish one."""
    account = day.world.ec2.account
    account.images[image] = image_of("linux", ImageId=image)
    account.parameters[PARAMETER] = image


def break_images(day, *broken):
    """Instances of these images run, and nothing on them ever asks who it is."""
    sound = day.world.ec2.on_running
    day.world.ec2.on_running = lambda instance: None if instance.image in broken else sound(instance)


def images(day):
    return dict(Counter(instance.image for instance in day.world.alive()))


def ever(day, image):
    return sum(instance.image == image for instance in day.world.ec2.instances.values())


def memory(day):
    return day.fleet.state.memory


@pytest.mark.long
def test_a_new_image_is_tried_by_one_agent_while_others_are_launched_from_the_old_one_and_then_all_follow():
    day = a_day().minutes(10)
    assert images(day) == {"ami-1": 3}
    assert memory(day).proven == {"cpu": "1 with ami-1"}
    name_image(day, "ami-2")
    builds = day.queue(9, seconds=3000.0)
    day.minutes(2)
    assert images(day)["ami-2"] == 1
    assert images(day)["ami-1"] >= 8
    day.minutes(6)
    assert memory(day).proven == {"cpu": "1 with ami-2"}
    day.queue(20, seconds=1200.0)
    day.minutes(3)
    assert images(day)["ami-2"] >= 8
    day.minutes(8 * 60)
    assert images(day) == {"ami-2": 3}
    assert all(build.ended for build in builds)
    assert day.failed == 0


def test_a_broken_image_takes_one_agent_now_and_then_and_keeps_no_job_waiting():
    day = a_day(min_agents=0, max_agents=40).minutes(2)
    day.queue(2, seconds=300.0)
    day.minutes(8)
    break_images(day, "ami-2")
    name_image(day, "ami-2")
    waits = []
    for _ in range(18):
        builds = day.queue(2, seconds=7200.0)
        day.minutes(10)
        waits += [(build.started_at or day.world.timeline.now) - build.queued_at for build in builds]
    assert images(day)["ami-1"] >= 3
    assert memory(day).proven == {"cpu": "1 with ami-1"}
    assert memory(day).trials.get("boot/cpu") is None
    assert memory(day).trials["image/cpu"].failures >= 3
    assert 3 <= ever(day, "ami-2") <= 10  # from launch to launch 5, 10 and then 20 minutes at least
    assert max(waits) < 900.0
    assert median(waits) < 300.0


def test_an_image_that_is_put_back_is_launched_at_once_and_the_next_one_is_tried_without_delay():
    day = a_day(min_agents=0).minutes(2)
    day.queue(2, seconds=7200.0)
    day.minutes(8)
    break_images(day, "ami-2")
    name_image(day, "ami-2")
    day.queue(6, seconds=7200.0)
    day.minutes(12)
    assert memory(day).trials["image/cpu"].failures == 1
    name_image(day, "ami-1")
    day.minutes(1)
    assert "image/cpu" not in memory(day).trials
    name_image(day, "ami-3")
    day.queue(12, seconds=3600.0)
    day.minutes(2)
    assert images(day)["ami-3"] == 1
    day.minutes(8)
    assert memory(day).proven == {"cpu": "1 with ami-3"}


def test_where_no_job_asks_for_more_agents_an_old_one_makes_room_for_the_new_image():
    day = a_day().minutes(10)
    name_image(day, "ami-2")
    day.minutes(5 * 60)
    assert images(day) == {"ami-2": 3}


def test_a_broken_image_costs_a_steady_fleet_three_agents_in_two_hours_at_most():
    day = a_day().minutes(10)
    break_images(day, "ami-2")
    name_image(day, "ami-2")
    day.minutes(5 * 60)
    assert 2 <= ever(day, "ami-2") <= 7
    assert images(day)["ami-1"] >= 2
    assert memory(day).trials.get("boot/cpu") is None


def test_an_image_whose_agents_power_themselves_off_counts_against_itself_alone():
    """What has ended EC2 does not list any more: which image it had is on record alone."""
    day = a_day(min_agents=0).minutes(2)
    day.queue(2, seconds=7200.0)
    day.minutes(8)
    sound, ec2 = day.world.ec2.on_running, day.world.ec2
    ec2.on_running = lambda instance: ec2.end(instance) if instance.image == "ami-2" else sound(instance)
    name_image(day, "ami-2")
    for _ in range(6):
        day.queue(2, seconds=7200.0)
        day.minutes(10)
    assert memory(day).trials["image/cpu"].failures >= 2
    assert memory(day).trials.get("boot/cpu") is None


def test_an_image_that_ec2_refuses_keeps_nothing_else_from_being_launched():
    day = a_day(min_agents=0).minutes(2)
    day.queue(1, seconds=3600.0)
    day.minutes(8)
    day.world.ec2.account.parameters[PARAMETER] = "ami-gone"
    day.queue(6, seconds=3600.0)
    day.minutes(3)
    assert images(day) == {"ami-1": 7}
    assert set(memory(day).trials) == {"image/cpu"}
    assert memory(day).trials["image/cpu"].why == "EC2 answered InvalidAMIID.NotFound"


@pytest.mark.parametrize("broken", [True, False], ids=["SSM fails", "the parameter is gone"])
def test_while_nobody_knows_the_image_what_was_proven_is_launched_and_nothing_is_replaced(broken):
    day = a_day().minutes(10)
    name_image(day, "ami-2")
    if broken:
        day.fleet.faults.plan(Fault("ssm GetParameters", times=10_000, status=503, code="InternalServerError"))
    else:
        del day.world.ec2.account.parameters[PARAMETER]
    day.queue(9, seconds=600.0)
    day.minutes(60)
    assert set(images(day)) == {"ami-1"}
    assert ever(day, "ami-2") == 0
    said = {event for event, _ in day.fleet.logged}
    assert ("image_parameters_not_read" if broken else "image_parameters_untold") in said


def test_a_pool_that_never_knew_an_image_launches_that_of_its_launch_template():
    day = a_day(min_agents=0).minutes(1)
    day.world.ec2.account.parameters.clear()
    day.queue(3)
    day.minutes(8)
    assert images(day) == {"ami-linux": 3}


def test_boots_that_keep_failing_do_not_keep_a_new_image_from_being_tried():
    """The old image breaks where it stands, as when what it downloads at its boot is gone: the new one is the cure."""
    day = a_day(min_agents=0, max_agents=4).minutes(2)
    [first] = day.queue(1, seconds=60.0)
    day.minutes(8)
    assert first.ended
    day.minutes(3 * 60)
    break_images(day, "ami-1")
    day.queue(4, seconds=600.0)

    def pauses():
        return "boot/cpu" in memory(day).trials and memory(day).trials["boot/cpu"].until_at > day.world.timeline.now + 200.0

    while day.agents() or not pauses():
        day.minutes(1)
    name_image(day, "ami-2")
    day.minutes(2)
    assert images(day) == {"ami-2": 1}
    day.minutes(6)
    assert memory(day).proven == {"cpu": "1 with ami-2"}
    assert "boot/cpu" not in memory(day).trials


def test_stopped_agents_of_the_old_image_go_once_the_new_one_has_booted_and_start_until_then():
    day = a_day(min_agents=0, max_agents=8, idle_seconds=300.0, warm_pool=WarmPool(min_agents=2, max_agents=4, max_age_seconds=86_400.0))
    day.queue(2, seconds=300.0)
    day.minutes(60)
    assert [instance.state for instance in day.world.alive()] == ["stopped"] * 2
    break_images(day, "ami-2")
    name_image(day, "ami-2")
    builds = day.queue(2, seconds=300.0)
    day.minutes(8)
    assert all(build.ended for build in builds)
    assert [step.count for step in day.done(Start) if step.reason is not Reason.PROVES_STARTS] == [2]
    name_image(day, "ami-3")
    day.queue(5, seconds=600.0)
    day.minutes(4 * 60)
    assert set(images(day)) == {"ami-3"}
    assert {instance.state for instance in day.world.alive()} == {"stopped"}
    assert day.failed == 0


def test_what_is_launched_is_on_record_with_its_image():
    day = a_day(min_agents=0).minutes(2)
    day.queue(1)
    day.minutes(3)
    [launch] = day.done(Launch)
    assert (launch.image, launch.tries) == ("ami-1", False)
    assert [record.version for record in day.fleet.state.read().records] == ["1 with ami-1"]
