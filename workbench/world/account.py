"""What the world's AWS account is like before anything is launched: quotas, instance types' sizes, launch templates."""

import base64
import re
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


def safe_template(fleet: str) -> dict[str, Any]:
    """Launch template data as ours are."""
    return {
        "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 1},
        "InstanceInitiatedShutdownBehavior": "terminate",
        "IamInstanceProfile": {"Arn": "arn:aws:iam::123456789012:instance-profile/agent"},
        "BlockDeviceMappings": [
            {"DeviceName": "/dev/xvda", "Ebs": {"Encrypted": True}},
            {"DeviceName": "/dev/xvdb", "VirtualName": "ephemeral0"},
        ],
        "NetworkInterfaces": [{"DeviceIndex": 0, "AssociatePublicIpAddress": False}],
        "TagSpecifications": [{"ResourceType": "volume", "Tags": [{"Key": "autoscaler:fleet", "Value": fleet}]}],
        "UserData": base64.b64encode(b"#!/bin/sh\n").decode(),
    }
