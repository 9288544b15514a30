"""Time-lines of launches that are lost for a cause: a zone without network, boots that take too long, first boots with a reboot."""

from itertools import pairwise

import pytest

from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from support.builders import a_pool, an_offering
from support.timeline import Day
from support.worlds import in_memory

HOUR = 60
FACTS = {"max_agents": 40, "idle_seconds": 600.0, "queue_maturity_seconds": 0.0, "boot_seconds": 180.0}
ZONES = ("subnet-a", "subnet-b", "subnet-c")


def a_day(**facts):
    return Day(in_memory(a_pool("cpu", **(FACTS | facts)), max_agents=200, max_launches_per_hour=1000)).minutes(3)


def a_day_of_zones(**facts):
    day = a_day(offerings=tuple(an_offering("m6i.2xlarge", subnet=subnet) for subnet in ZONES), **facts)
    day.world.ec2.zones.update({subnet: f"us-west-2{subnet[-1]}" for subnet in ZONES})
    return day


def launched(day, subnet=None):
    return sum(subnet in {None, instance.subnet} for instance in day.world.ec2.instances.values())


def without_network(day, lost):
    """Machines of these subnets run from now on, and reach nothing. Returns how to mend it."""
    comes_up, kept = day.world.ec2.on_running, list(lost)
    day.world.ec2.on_running = lambda instance: None if instance.subnet in kept else comes_up(instance)
    return kept.clear


def subjects(day):
    return [message.subject for message in day.fleet.notifier.sent]


def waits(builds):
    """Minutes that each job waited."""
    return [(build.started_at - build.queued_at) / 60.0 if build.started_at else None for build in builds]


def test_jobs_are_served_from_other_zones_after_the_first_boots_that_fail_in_one():
    day = a_day_of_zones()
    without_network(day, ["subnet-a"])
    builds = []
    for minute in range(6 * HOUR):
        if minute % 20 == 5:
            builds.append(day.jenkins.submit(f"unit-{minute}", "cpu", 300.0))
        day.minutes(1)
    assert max(waits(builds)) <= 15 + 15
    assert max(waits(builds)[2:]) <= 2 * 5
    assert launched(day, "subnet-a") <= 2
    assert "m6i.2xlarge/subnet-a/on-demand is asked for last: " in "\n".join(day.why("cpu"))


def test_of_several_agents_one_tries_the_zone_again_and_once_it_boots_the_zone_is_as_good_as_the_others():
    day = a_day_of_zones()
    mend = without_network(day, ["subnet-a"])
    day.queue(6, seconds=300.0)
    day.minutes(2 * HOUR)
    before = launched(day, "subnet-a")
    assert before <= 6 + 1  # what was launched before the first loss was known, and a try
    for _ in range(4):
        day.queue(6, seconds=300.0)
        day.minutes(HOUR // 2)
    assert launched(day, "subnet-a") - before <= 6
    mend()
    for _ in range(4):
        builds = day.queue(6, seconds=300.0)
        day.minutes(HOUR)
    assert max(waits(builds)) <= 6
    assert "subnet-a/on-demand is asked for last" not in "\n".join(day.why("cpu"))


def test_the_zone_is_not_tried_anew_before_the_last_try_is_known_to_be_lost():
    """In the minute in which a machine was late, and not ended yet, the next one was launched: no pause was kept."""
    day = a_day_of_zones(idle_seconds=60.0)
    without_network(day, ["subnet-a"])
    for _ in range(6 * 12):
        day.queue(4, seconds=600.0)
        day.minutes(5)
    tries = sorted(instance.launched_at for instance in day.world.ec2.instances.values() if instance.subnet == "subnet-a")
    pauses = [later - at for at, later in pairwise(tries)]
    assert len(pauses) > 4
    assert min(pauses[-4:]) >= 1200.0


def test_two_controllers_of_a_pool_try_a_lost_zone_with_one_agent_at_a_time():
    """Each tried it in the same pass."""
    offerings = tuple(an_offering("m6i.2xlarge", subnet=subnet) for subnet in ZONES)
    pool = a_pool("cpu", controllers=("main", "other"), offerings=offerings, **FACTS)
    day = Day(in_memory(pool, max_agents=200, max_launches_per_hour=1000)).minutes(3)
    day.world.ec2.zones.update({subnet: f"us-west-2{subnet[-1]}" for subnet in ZONES})
    without_network(day, ["subnet-a"])
    for _ in range(8):
        for controller in day.world.controllers.values():
            for n in range(4):
                controller.submit(f"unit-{n}", "cpu", 300.0)
        day.minutes(HOUR // 2)
    lost = sorted(instance.launched_at for instance in day.world.ec2.instances.values() if instance.subnet == "subnet-a")
    tries = [at for at in lost if at > lost[0] + 900.0]
    assert len(tries) >= 3
    assert min(later - at for at, later in pairwise(tries)) >= 600.0


def test_of_a_type_that_boots_in_no_zone_one_agent_at_a_time_tries_whatever_the_zone():
    """Each zone was tried at its own times: five machines were lost in an hour."""
    offerings = tuple(an_offering(name, subnet=subnet) for name in ("m6i.2xlarge", "m5.2xlarge") for subnet in ZONES)
    day = a_day(offerings=offerings, idle_seconds=120.0)
    day.world.ec2.zones.update({subnet: f"us-west-2{subnet[-1]}" for subnet in ZONES})
    comes_up = day.world.ec2.on_running
    day.world.ec2.on_running = lambda instance: None if instance.instance_type == "m6i.2xlarge" else comes_up(instance)
    for _ in range(6 * 6):
        day.queue(6, seconds=240.0)
        day.minutes(10)
    lost = [instance.launched_at for instance in day.world.ec2.instances.values() if instance.instance_type == "m6i.2xlarge"]
    assert max(sum(at <= other < at + 3600.0 for other in lost) for at in lost if at > min(lost) + 7200.0) <= 3


def test_a_zone_that_keeps_losing_boots_beside_others_is_told_once():
    day = a_day_of_zones()
    without_network(day, ["subnet-a"])
    for _ in range(6):
        day.queue(6, seconds=300.0)
        day.minutes(HOUR // 2)
    titles = [title for title in subjects(day) if "do not boot" in title]
    assert sorted(titles) == [
        "[f] agents of cpu do not boot",  # all that there were
        "[f] agents of cpu do not boot on m6i.2xlarge/subnet-a/on-demand",
        "[f] over: agents of cpu do not boot",
    ]


def test_no_zone_is_said_to_be_worse_than_others_while_an_outage_of_all_ends():
    day = a_day_of_zones()
    mend = without_network(day, ZONES)
    day.queue(24, seconds=900.0)
    day.minutes(2 * HOUR)
    mend()
    day.minutes(HOUR)
    assert [title for title in subjects(day) if "do not boot on" in title] == []


def test_agents_do_not_boot_elsewhere_in_a_pool_that_has_no_other_place():
    day = a_day()
    comes_up, number = day.world.ec2.on_running, iter(range(100))
    day.world.ec2.on_running = lambda instance: None if next(number) % 8 < 3 else comes_up(instance)
    day.queue(8, seconds=1200.0)
    day.minutes(HOUR)
    assert [title for title in subjects(day) if "do not boot on" in title] == []


def test_if_all_zones_are_lost_few_are_launched_and_forty_jobs_have_agents_soon_after_the_end():
    day = a_day_of_zones()
    mend = without_network(day, ZONES)
    builds = day.queue(40, seconds=300.0)
    day.minutes(HOUR)
    first = launched(day)
    assert first <= 40 + 40 + 6
    day.minutes(2 * HOUR)
    assert launched(day) - first <= 2 * 3 + 1
    mend()
    day.minutes(20 + 3 * 6 + 5)
    assert None not in waits(builds)


def test_boots_that_end_just_after_their_deadline_are_given_twice_the_time():
    day = a_day()
    day.queue(2, seconds=300.0)
    day.minutes(40)
    comes_up, late = day.world.ec2.on_running, [18 * 60.0]

    def slowly(instance):
        seconds = max(0.0, instance.launched_at + late[0] - day.world.timeline.now)
        day.world.timeline.after(seconds, lambda: comes_up(instance) if instance.state == "running" else None)

    day.world.ec2.on_running = slowly
    before, builds = launched(day), day.queue(5, seconds=600.0)
    day.minutes(HOUR)
    assert None not in waits(builds)
    assert launched(day) - before <= 5 + 5 + 2
    late[0] = 0.0
    for _ in range(9):
        day.queue(1, seconds=60.0)
        day.minutes(30)
    day.world.ec2.on_running = lambda _instance: None
    day.minutes(2 * HOUR)
    before = launched(day)
    day.queue(1, seconds=60.0)
    day.minutes(20)
    assert launched(day) == before + 2  # the time is as it was: the next one is launched after 15 min


@pytest.mark.parametrize("away_minutes", [3, 7])
def test_an_agent_that_reboots_at_first_has_its_time_for_a_boot_and_serves_afterwards(away_minutes):
    day = a_day(boot_timeout_seconds=1800.0, idle_seconds=1800.0)
    reboots(day, away_minutes)
    builds = []
    for minute in range(4 * HOUR):
        if minute % 20 == 0:
            builds.append(day.jenkins.submit("build", "cpu", 600.0))
        day.minutes(1)
    assert launched(day) == 1
    assert [build.ended for build in builds[:-1]] == [Ended.KILLED] + [Ended.FINISHED] * 10


def test_a_pool_whose_agents_all_reboot_at_first_is_tried_one_by_one_and_told_once():
    day = a_day(boot_timeout_seconds=1800.0, idle_seconds=300.0)
    reboots(day, 10)
    for minute in range(4 * HOUR):
        if minute % 20 == 0:
            day.queue(4, seconds=600.0)
        day.minutes(1)
    assert launched(day) <= 4 + 6 + 3 * 3
    (title,) = [title for title in subjects(day) if "do not boot" in title]
    assert title == "[f] agents of cpu do not boot"
    assert any("it went away as soon as it had connected" in text for text in (message.text for message in day.fleet.notifier.sent))


def reboots(day, away_minutes):
    """Each machine reboots 90 s after its agent has connected for the first time."""
    seen, connect, gone = set(), day.jenkins.connect, set()

    def reboot(name):
        if name in day.jenkins.nodes:
            gone.add(name)
            day.jenkins.disconnect(name, killed_by="the machine rebooted")
            day.world.timeline.after(60.0 * away_minutes, lambda: (gone.discard(name), day.jenkins.connect(name)))

    def connects(name):
        if name in gone:
            return
        connect(name)
        node = day.jenkins.nodes.get(name)
        if node is not None and node.connected and name not in seen:
            seen.add(name)
            day.world.timeline.after(90.0, lambda: reboot(name))

    day.jenkins.connect = connects


def test_a_type_that_was_never_asked_for_in_a_lost_zone_is_asked_for_in_another_one():
    types = ("m6i.2xlarge", "m5.2xlarge")
    day = a_day(offerings=tuple(an_offering(name, subnet=subnet) for name in types for subnet in ZONES))
    day.world.ec2.zones.update({subnet: f"us-west-2{subnet[-1]}" for subnet in ZONES})
    without_network(day, ["subnet-a"])
    day.queue(2, seconds=300.0)
    day.minutes(30)
    day.world.ec2.capacity.update({f"m6i.2xlarge/{subnet}/on-demand": 0 for subnet in ZONES})
    before, builds = launched(day, "subnet-a"), day.queue(1, seconds=300.0)
    day.minutes(40)
    assert launched(day, "subnet-a") == before
    assert None not in waits(builds)
