"""EC2's errors, and the codes with which it refuses a launch, of everything or of one offering."""

from typing import Any

# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
LAUNCH_CODES = (
    *("InsufficientInstanceCapacity", "InsufficientHostCapacity", "InsufficientReservedInstanceCapacity", "InsufficientCapacity"),
    *("InsufficientCapacityOnHost", "InsufficientVolumeCapacity", "UnfulfillableCapacity", "ReservationCapacityExceeded"),
    *("SpotMaxPriceTooLow", "MaxSpotInstanceCountExceeded", "MaxSpotFleetRequestCountExceeded"),
    *("InsufficientFreeAddressesInSubnet", "PrivateIpAddressLimitExceeded", "InvalidSubnet", "InvalidSubnetID.NotFound"),
    *("VcpuLimitExceeded", "InstanceLimitExceeded", "AuthFailure.ServiceLinkedRoleCreationNotPermitted"),
    *("Unsupported", "UnsupportedOperation", "UnsupportedHostConfiguration", "UnsupportedTenancy", "InvalidInstanceType"),
    *("VolumeTypeNotAvailableInZone", "InvalidAMIID.Malformed", "InvalidAMIID.NotFound", "InvalidAMIID.Unavailable"),
    *("InvalidBlockDeviceMapping", "InvalidFleetConfig", "InvalidFleetConfiguration", "InvalidGroup.NotFound", "InvalidKeyPair.NotFound"),
    *("InvalidLaunchTemplateId.Malformed", "InvalidLaunchTemplateId.NotFound", "InvalidLaunchTemplateId.VersionNotFound"),
    *("InvalidLaunchTemplateName.MalformedException", "InvalidLaunchTemplateName.NotFoundException", "InvalidSecurityGroupID.NotFound"),
    *("InvalidSnapshot.NotFound", "InvalidUserData.Malformed", "SecurityGroupsPerInstanceLimitExceeded", "TagLimitExceeded"),
    *("RequestLimitExceeded", "RequestResourceCountExceeded", "RequestThrottled", "ResourceCountExceeded", "Throttling"),
    *("ThrottlingException", "MaxFleetCountExceeded", "Blocked", "OptInRequired", "PendingVerification"),
    # What nothing in particular follows from.
    *(
        "AuthFailure",
        "InvalidParameter",
        "InvalidParameterCombination",
        "InvalidParameterValue",
        "MissingParameter",
        "UnauthorizedOperation",
    ),
    *("OperationNotPermitted", "EncryptedVolumesNotSupported", "MaxIOPSLimitExceeded", "VolumeLimitExceeded", "SomethingNew"),
)


# As EC2 words it: CreateFleet launches with the caller's rights, and each offering may lack another one.
_DENIED = (
    "You are not authorized to perform this operation. User: arn:aws:sts::123456789012:assumed-role/scale-up/scale-up is not authorized to "
    "perform: iam:PassRole on resource: arn:aws:iam::123456789012:role/agent because no identity-based policy allows the iam:PassRole "
    "action. Encoded authorization failure message: 4sBcD"
)


class Ec2Error(Exception):
    """EC2 answers with an error: its code, its HTTP status."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        """Keep what EC2 says."""
        super().__init__(message)
        self.code = code
        self.status = status


def refused(override: dict[str, Any], market: str, code: str) -> dict[str, Any]:
    """Say in CreateFleet's answer why one offering gave nothing."""
    return {
        "LaunchTemplateAndOverrides": {"Overrides": {key: override[key] for key in ("InstanceType", "SubnetId") if key in override}},
        "Lifecycle": market,
        "ErrorCode": code,
        "ErrorMessage": _DENIED if code == "UnauthorizedOperation" else f"{override['InstanceType']} is not to be had: {code}",
    }
