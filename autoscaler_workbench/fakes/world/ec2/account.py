"""The simulated AWS account before anything is launched: quotas, sizes of instance types, launch templates, parameters."""

import base64
import re
from dataclasses import dataclass, field
from typing import Any

# Names as Service Quotas has them: https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-quotas.html; values for a large CI.
QUOTAS = {
    "EC2-VPC Elastic IPs": 5.0,
    "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances": 50_000.0,
    "Running On-Demand G and VT instances": 20_000.0,
    "Running On-Demand P instances": 20_000.0,
    "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests": 50_000.0,
    "All G and VT Spot Instance Requests": 20_000.0,
    "All P4, P3 and P2 Spot Instance Requests": 20_000.0,
    "All P5 Spot Instance Requests": 0.0,
}
_VCPUS_A_SIZE = {"medium": 1, "large": 2, "xlarge": 4}  # of most families; N times as many where N stands before "xlarge"
_SIZE = re.compile(r"(\d*)([a-z]+)")


def vcpus_of(instance_type: str) -> int:
    """How many vCPUs an instance has, by the size in its name."""
    found = _SIZE.fullmatch(instance_type.partition(".")[2])
    times, size = found.groups() if found else ("", "xlarge")
    return int(times or 1) * _VCPUS_A_SIZE.get(size, 1)


ROOT_DEVICES = {"linux": "/dev/xvda", "windows": "/dev/sda1"}


def image_of(platform: str, **facts: Any) -> dict[str, Any]:
    """An image as EC2 tells of it."""
    windows = {"Platform": "windows"} if platform == "windows" else {}
    details, operation = ("Windows", "RunInstances:0002") if windows else ("Linux/UNIX", "RunInstances")
    told = {"ImageId": f"ami-{platform}", "State": "available", "Architecture": "x86_64", "RootDeviceName": ROOT_DEVICES[platform]}
    return told | windows | {"PlatformDetails": details, "UsageOperation": operation} | facts


@dataclass(slots=True)
class Account:
    """Images, routes and roles: whatever else a launch needs."""

    images: dict[str, dict[str, Any]] = field(default_factory=lambda: {f"ami-{name}": image_of(name) for name in ROOT_DEVICES})
    parameters: dict[str, str] = field(default_factory=dict)  # of Systems Manager: values by name
    routes: dict[str, str] = field(default_factory=dict)  # where a subnet's own route table leads; unlisted: the main one, to a NAT
    refused: dict[str, tuple[str, str]] = field(default_factory=dict)  # code and message of RunInstances, by instance type
    spot_role: bool = True  # AWSServiceRoleForEC2Spot is there
    concurrent_executions: int = 1000
    reserved_executions: int = 0
    stacks: tuple[str, ...] = ()  # names of the fleets whose stacks are there
    outputs: dict[str, str] = field(default_factory=dict)  # of each of these stacks

    def get_parameters(self, names: list[str]) -> dict[str, Any]:
        """Answer GetParameters of Systems Manager: what is there, and beside it the names of what is not."""
        found = [{"Name": name, "Type": "String", "Value": self.parameters[name]} for name in names if name in self.parameters]
        return {"Parameters": found, "InvalidParameters": [name for name in names if name not in self.parameters]}


def safe_template(fleet: str, platform: str = "linux") -> dict[str, Any]:
    """Launch template data as ours are."""
    return {
        "ImageId": f"ami-{platform}",
        "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 1},
        "InstanceInitiatedShutdownBehavior": "terminate",
        "IamInstanceProfile": {"Arn": "arn:aws:iam::123456789012:instance-profile/agent"},
        "BlockDeviceMappings": [
            {"DeviceName": ROOT_DEVICES[platform], "Ebs": {"Encrypted": True}},
            {"DeviceName": "/dev/xvdb", "VirtualName": "ephemeral0"},
        ],
        "NetworkInterfaces": [{"DeviceIndex": 0, "AssociatePublicIpAddress": False}],
        "TagSpecifications": [{"ResourceType": "volume", "Tags": [{"Key": "autoscaler:fleet", "Value": fleet}]}],
        "UserData": base64.b64encode(b"#!/bin/sh\n").decode(),
    }
