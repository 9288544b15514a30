"""Time-lines of agents with several volumes: all of them are in the price, by what EC2 says of the launch template and its image."""

import pytest
import yaml

from autoscaler.config import check
from autoscaler.domain.wording import dollars
from autoscaler_workbench.fakes.world.faults import Fault
from support.remembered import tables
from support.timeline import Day
from support.worlds import in_memory

FILE = """\
fleet: f
limits: {max_agents: 50, max_launches_per_hour: 200, max_usd_per_hour: 500, max_usd_per_month: 90000}
controllers: {main: {url: "https://jenkins.example.com/main/", secret: jenkins/main}}
pools: {cpu: {executors: 1, launch_template: t, instance_types: [c5.18xlarge], max_agents: 5, idle_seconds: 60, warm_pool: {min_agents: 1}}}
"""
FOR_EVER = 10**9
A_GIB = 0.08 / 730.0


def volume(device, gib=None, kind="gp3"):
    return {"DeviceName": device, "Ebs": {"Encrypted": True} | ({} if gib is None else {"VolumeSize": gib, "VolumeType": kind})}


ROOT, DATA = volume("/dev/xvda", 100), volume("/dev/sdf", 900)


def a_day(template, image=(), **keys):
    file = yaml.safe_load(FILE)
    file["pools"]["cpu"] |= keys
    day = Day(in_memory(*check(file, "here").domain().pools.values()))
    day.world.ec2.template_data["t"] = {"ImageId": "ami-linux", "BlockDeviceMappings": [*template]}
    day.world.ec2.account.images["ami-linux"] |= {"BlockDeviceMappings": [*image]}
    return day


def stopped_usd(day):
    """What the one stopped agent costs an hour, as `status` says it."""
    [pool] = day.status().pools
    assert pool.off.count == 1
    return pool.off.usd_per_hour


def has_stopped(day):
    day.minutes(1).queue(1, seconds=30.0)
    return day.minutes(12)


def why(day):
    return day.why("cpu")


@pytest.mark.parametrize(
    ("template", "image", "gib"),
    [
        ([ROOT, DATA], [], 1000),
        ([ROOT], [DATA], 1000),  # which the image brings
        ([volume("/dev/xvda")], [volume("/dev/xvda", 30)], 30),  # as large as the image has it
        ([ROOT, volume("/dev/sdf", 400, "gp2")], [], 600),  # dearer by a quarter
        ([ROOT, volume("/dev/sdf", 1600, "st1")], [], 1000),
        ([ROOT, volume("/dev/sdf", 64, "io3")], [], 200),  # which nobody knows here: as the dearest
    ],
)
def test_a_stopped_agent_costs_what_all_its_volumes_cost(template, image, gib):
    """The data volume of 900 GiB was left out: $8 a month were counted for $80."""
    day = has_stopped(a_day(template, image))
    assert stopped_usd(day) == pytest.approx(gib * A_GIB, abs=1e-4)
    told = " ".join(why(day))
    assert f"a stopped agent costs {dollars(gib * A_GIB)} an hour for /dev/" in told
    assert f"a day running and {dollars(24 * gib * A_GIB)} stopped" in told  # by which it is kept


def test_the_month_counts_them_too_while_it_is_stopped():
    day = has_stopped(a_day([ROOT, DATA]))
    before = day.fleet.state.memory.month.parts.stopped_usd
    day.minutes(6)
    assert day.fleet.state.memory.month.parts.stopped_usd - before == pytest.approx(100 * A_GIB, rel=0.01)


def test_a_size_that_the_fleet_file_says_counts_and_one_that_ec2_does_not_say_is_as_large_as_by_default():
    assert stopped_usd(has_stopped(a_day([ROOT, DATA], volume_gib=300))) == pytest.approx(300 * A_GIB, abs=1e-4)
    assert stopped_usd(has_stopped(a_day([volume("/dev/xvda")]))) == pytest.approx(100 * A_GIB, abs=1e-4)


def test_while_they_cannot_be_read_the_default_counts_and_what_was_launched_meanwhile_is_priced_afterwards():
    day = a_day([ROOT, DATA])
    day.fleet.faults.plan(Fault("ec2 DescribeLaunchTemplateVersions", status=403, code="UnauthorizedOperation", times=FOR_EVER))
    has_stopped(day)
    assert stopped_usd(day) == pytest.approx(100 * A_GIB, abs=1e-4)
    day.fleet.faults.planned.clear()
    day.minutes(1)
    assert stopped_usd(day) == pytest.approx(1000 * A_GIB, abs=1e-4)


def test_they_are_read_once_for_each_version_of_the_launch_template():
    day = a_day([ROOT])
    day.minutes(5)
    read = [volumes.source for volumes in tables(day.fleet.state.memory).volumes.values()]
    day.world.ec2.template_versions["t"] = 2
    day.world.ec2.template_data["t"] = {"ImageId": "ami-linux", "BlockDeviceMappings": [ROOT, DATA]}
    day.minutes(2)
    [volumes] = tables(day.fleet.state.memory).volumes.values()
    assert (read, volumes.source, len(volumes.volumes)) == (["t 1"], "t 2", 2)
    calls = []
    day.fleet.ports.compute.volumes = calls.append
    day.minutes(5)
    assert calls == []
