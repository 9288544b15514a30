"""What ``validate --live`` and the doctor find in the launch templates that pools name."""

import base64
from copy import deepcopy

import pytest

from autoscaler.adapters.launch_templates import check_templates
from autoscaler.errors import ConfigError, TransientError
from support.builders import a_fleet, a_pool
from support.worlds import stand
from workbench.faces.local import LocalEc2Client
from workbench.world.account import safe_template
from workbench.world.faults import Fault

SAFE = safe_template("f")


def findings(**changes):
    with stand("memory", a_fleet(a_pool("cpu"))) as here:
        here.world.ec2.template_data["cpu"] = deepcopy(SAFE) | changes
        return check_templates(here.fleet, LocalEc2Client(here.ec2_face))["cpu"]


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
        ({"BlockDeviceMappings": [{"DeviceName": "/dev/sdb", "Ebs": {"VolumeSize": 8}}]}, "/dev/sdb: Ebs.Encrypted must be true"),
        ({"TagSpecifications": []}, "must tag volumes with autoscaler:fleet=f"),
        ({"NetworkInterfaces": [{"AssociatePublicIpAddress": True}]}, "AssociatePublicIpAddress must be false"),
        ({"NetworkInterfaces": [{"SubnetId": "subnet-a"}]}, "SubnetId must not be set"),
        ({"UserData": ""}, "UserData is missing"),
        ({"UserData": "~~"}, "UserData is not base64"),
        ({"UserData": base64.b64encode(b"x" * 16_385).decode()}, "UserData has 16385 bytes"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_unsafe_is_said_with_what_to_change(changes, said):
    [finding] = findings(**changes)
    assert said in finding


def test_a_template_that_is_not_there_is_said():
    with stand("memory", a_fleet(a_pool("cpu"))) as here:
        here.world.ec2.templates.clear()
        assert check_templates(here.fleet, LocalEc2Client(here.ec2_face)) == {
            "cpu": ["there is no such launch template, or not that version of it"]
        }


@pytest.mark.parametrize(("fault", "error"), [({"status": 403, "code": "UnauthorizedOperation"}, TransientError), ({}, ConfigError)])
def test_no_way_to_aws_is_one_line(fault, error):
    with stand("memory", a_fleet(a_pool("cpu"))) as here:
        here.faults.plan(Fault("ec2 DescribeLaunchTemplateVersions", **fault))
        with pytest.raises(error):
            check_templates(here.fleet, LocalEc2Client(here.ec2_face))
