"""What ``validate --live`` and the doctor find in the launch templates that pools name."""

import base64
from copy import deepcopy

import pytest

from autoscaler.adapters.account import AwsAccount
from autoscaler.domain.facts.fleet import WarmPool
from autoscaler.errors import ConfigError, TransientError
from autoscaler_workbench.fakes.http_fakes.clients import LocalEc2Client
from autoscaler_workbench.fakes.world.ec2.account import image_of, safe_template
from autoscaler_workbench.fakes.world.faults import Fault
from support.builders import a_fleet, a_pool, an_offering
from support.worlds import stand

SAFE = safe_template("f")


IMAGES = {
    "ami-ubuntu": image_of("linux", ImageId="ami-ubuntu", RootDeviceName="/dev/sda1"),
    "ami-arm": image_of("linux", ImageId="ami-arm", Architecture="arm64"),
    "ami-new": image_of("linux", ImageId="ami-new", State="pending"),
    "ami-store": image_of("linux", ImageId="ami-store", RootDeviceType="instance-store"),
    "ami-strange": image_of("windows", ImageId="ami-strange", RootDeviceName="/dev/xvda"),
}


def findings(*, subnet="", warm=None, **changes):
    with stand("memory", a_fleet(a_pool("cpu", offerings=(an_offering(subnet=subnet),), warm_pool=warm))) as here:
        here.world.ec2.template_data["cpu"] = deepcopy(SAFE) | changes
        here.world.ec2.account.images |= IMAGES
        here.world.ec2.account.routes |= {"subnet-public": "igw-1", "subnet-closed": ""}
        return [*unsafe(here).get("cpu", ())]


def unsafe(here):
    return AwsAccount(lambda _service: LocalEc2Client(here.ec2_face), here.fleet).unsafe_templates({})


def test_a_safe_template_has_nothing_to_be_said_of():
    assert findings() == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"MetadataOptions": {"HttpTokens": "optional", "HttpPutResponseHopLimit": 1}}, "HttpTokens must be required"),
        ({"MetadataOptions": {"HttpTokens": "required"}}, "HttpPutResponseHopLimit must be 1"),
        ({"InstanceInitiatedShutdownBehavior": "stop"}, "InstanceInitiatedShutdownBehavior must be terminate"),
        ({"IamInstanceProfile": {}}, "IamInstanceProfile is missing"),
        ({"DisableApiTermination": True}, "DisableApiTermination must be off"),
        ({"InstanceMarketOptions": {"MarketType": "spot"}}, "InstanceMarketOptions must not be set"),
        (
            {"BlockDeviceMappings": [*SAFE["BlockDeviceMappings"], {"DeviceName": "/dev/sdb", "Ebs": {"VolumeSize": 8}}]},
            "/dev/sdb: Ebs.Encrypted must be true",
        ),
        ({"TagSpecifications": []}, "must tag volumes with autoscaler:fleet=f"),
        ({"NetworkInterfaces": [{"SubnetId": "subnet-a"}]}, "SubnetId must not be set"),
        ({"ImageId": ""}, "ImageId is missing"),
        ({"ImageId": "ami-gone"}, "there is no image ami-gone"),
        ({"ImageId": "ami-ubuntu"}, "BlockDeviceMappings has no /dev/sda1, the root device of ami-ubuntu"),
        ({"ImageId": "ami-arm"}, "c5.18xlarge cannot boot the image ami-arm: that is of arm64"),
        ({"ImageId": "ami-new"}, "the image ami-new is pending"),
        ({"ImageId": "ami-strange"}, "the image ami-strange is of windows, the pool's platform is linux"),
        ({"UserData": ""}, "UserData is missing"),
        ({"UserData": "~~"}, "UserData is not base64"),
        ({"UserData": base64.b64encode(b"x" * 16_385).decode()}, "UserData has 16385 bytes"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_unsafe_is_said_with_what_to_change(changes, said):
    [finding] = findings(**changes)
    assert said in finding


WARM = WarmPool(min_agents=0, max_agents=5, max_age_seconds=1e6)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"DisableApiStop": True}, "DisableApiStop must be off: no agent could be stopped"),
        ({"ImageId": "ami-store"}, "the image ami-store has its root on an instance store: no agent can be stopped"),
    ],
    ids=["stop protection", "instance store"],
)
def test_what_keeps_agents_from_being_stopped_is_said_where_a_pool_wants_that(changes, said):
    [finding] = findings(warm=WARM, **changes)
    assert said in finding
    assert findings(**changes) == []
    assert findings(warm=WARM) == []


PUBLIC, PRIVATE, SUBNETS_OWN = (
    [{"DeviceIndex": 0} | more] for more in ({"AssociatePublicIpAddress": True}, {"AssociatePublicIpAddress": False}, {})
)


@pytest.mark.parametrize(
    ("subnet", "interfaces", "said"),
    [
        ("subnet-public", PUBLIC, ""),
        ("subnet-public", PRIVATE, "subnet-public leads out through an internet gateway"),
        ("subnet-public", SUBNETS_OWN, "subnet-public leads out through an internet gateway"),
        ("subnet-behind-a-nat", PRIVATE, ""),
        ("subnet-behind-a-nat", PUBLIC, ""),
        ("subnet-closed", PRIVATE, "subnet-closed has no default route"),
    ],
)
def test_a_subnet_from_which_an_agent_would_reach_nobody_is_said(subnet, interfaces, said):
    found = findings(subnet=subnet, NetworkInterfaces=interfaces)
    assert len(found) == bool(said)
    assert said in "".join(found)


def test_an_image_that_ec2_looks_up_at_each_launch_is_not_judged():
    assert findings(ImageId="resolve:ssm:/ci/image") == []


def test_a_template_that_is_not_there_is_said():
    with stand("memory", a_fleet(a_pool("cpu"))) as here:
        here.world.ec2.templates.clear()
        assert unsafe(here) == {"cpu": ("there is no such launch template, or not that version of it",)}


@pytest.mark.parametrize(("fault", "error"), [({"status": 403, "code": "UnauthorizedOperation"}, TransientError), ({}, ConfigError)])
def test_no_way_to_aws_is_one_line(fault, error):
    with stand("memory", a_fleet(a_pool("cpu"))) as here:
        here.faults.plan(Fault("ec2 DescribeLaunchTemplateVersions", **fault))
        with pytest.raises(error):
            unsafe(here)
