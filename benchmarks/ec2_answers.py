"""DescribeInstances as EC2 sends it: pages of XML, each instance with all that EC2 tells of one, read by botocore's own parser."""

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from typing import Any

from botocore.loaders import Loader
from botocore.model import OperationModel, ServiceModel

from autoscaler.adapters.aws import session_with_quick_times
from autoscaler_workbench.fakes.http_fakes.aws.ec2_query import answer_xml

_PAGE = 1000  # what the adapter asks for
# What a machine of the stack's launch template shows besides what we read (EC2's API reference, DescribeInstances).
_GROUP = {"GroupId": "sg-0a1b2c3d4e5f60718", "GroupName": "autoscaler-agents"}
_DATE = "2026-11-24T02:00:00.000Z"
_BESIDES: dict[str, Any] = {
    "ImageId": "ami-0a1b2c3d4e5f60718",
    "PrivateDnsName": "ip-10-0-12-34.us-west-2.compute.internal",
    "PrivateIpAddress": "10.0.12.34",
    "PublicDnsName": "",
    "AmiLaunchIndex": 0,
    "Monitoring": {"State": "disabled"},
    "Placement": {"AvailabilityZone": "us-west-2a", "GroupName": "", "Tenancy": "default"},
    "SubnetId": "subnet-0a1b2c3d4e5f60718",
    "VpcId": "vpc-0a1b2c3d4e5f60718",
    "Architecture": "x86_64",
    "BlockDeviceMappings": [
        {
            "DeviceName": "/dev/xvda",
            "Ebs": {"AttachTime": _DATE, "DeleteOnTermination": True, "Status": "attached", "VolumeId": "vol-0a1b2c3d4e5f60718"},
        }
    ],
    "ClientToken": "fleet-0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9-0",
    "EbsOptimized": False,
    "EnaSupport": True,
    "Hypervisor": "xen",
    "NetworkInterfaces": [
        {
            "Attachment": {
                "AttachTime": _DATE,
                "AttachmentId": "eni-attach-0a1b2c3d4e5f60718",
                "DeleteOnTermination": True,
                "DeviceIndex": 0,
                "Status": "attached",
                "NetworkCardIndex": 0,
            },
            "Description": "",
            "Groups": [_GROUP],
            "MacAddress": "02:1a:2b:3c:4d:5e",
            "NetworkInterfaceId": "eni-0a1b2c3d4e5f60718",
            "OwnerId": "123456789012",
            "PrivateDnsName": "ip-10-0-12-34.us-west-2.compute.internal",
            "PrivateIpAddress": "10.0.12.34",
            "PrivateIpAddresses": [{"Primary": True, "PrivateIpAddress": "10.0.12.34"}],
            "SourceDestCheck": True,
            "Status": "in-use",
            "SubnetId": "subnet-0a1b2c3d4e5f60718",
            "VpcId": "vpc-0a1b2c3d4e5f60718",
            "InterfaceType": "interface",
        }
    ],
    "RootDeviceName": "/dev/xvda",
    "RootDeviceType": "ebs",
    "SecurityGroups": [_GROUP],
    "SourceDestCheck": True,
    "VirtualizationType": "hvm",
    "CpuOptions": {"CoreCount": 4, "ThreadsPerCore": 2},
    "CapacityReservationSpecification": {"CapacityReservationPreference": "open"},
    "HibernationOptions": {"Configured": False},
    "MetadataOptions": {
        "State": "applied",
        "HttpTokens": "required",
        "HttpPutResponseHopLimit": 1,
        "HttpEndpoint": "enabled",
        "HttpProtocolIpv6": "disabled",
        "InstanceMetadataTags": "disabled",
    },
    "EnclaveOptions": {"Enabled": False},
    "PlatformDetails": "Linux/UNIX",
    "UsageOperation": "RunInstances",
    "UsageOperationUpdateTime": _DATE,
    "PrivateDnsNameOptions": {"HostnameType": "ip-name", "EnableResourceNameDnsARecord": False},
    "MaintenanceOptions": {"AutoRecovery": "default"},
    "CurrentInstanceBootMode": "legacy-bios",
}


def xml_pages(instances: Iterable[dict[str, Any]]) -> list[bytes]:
    """Write these instances as EC2 would, a page of a thousand each."""
    rest, pages = iter(instances), []
    while page := list(islice(rest, _PAGE)):
        shown = [{"ReservationId": f"r-{n:017x}", "OwnerId": "123456789012", "Instances": [_BESIDES | raw]} for n, raw in enumerate(page)]
        pages.append(answer_xml("DescribeInstances", {"Reservations": shown}))
    return pages


def read_pages(pages: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Read them as boto3 does, one at a time."""
    operation = _describe_instances()
    factory = session_with_quick_times().get_component("response_parser_factory")
    parser, shape = factory.create_parser(operation.service_model.metadata["protocol"]), operation.output_shape
    assert shape is not None  # noqa: S101 - DescribeInstances has an answer
    for body in pages:
        parsed: dict[str, Any] = parser.parse({"status_code": 200, "headers": {}, "body": body}, shape)
        yield parsed


@cache  # Lambda reads it once, at a cold start
def _describe_instances() -> OperationModel:
    return ServiceModel(Loader().load_service_model("ec2", "service-2"), "ec2").operation_model("DescribeInstances")
