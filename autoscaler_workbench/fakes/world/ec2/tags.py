"""Tags that EC2 alone writes, as documented: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html#tag-restrictions."""

from collections.abc import Iterable
from typing import Any

from autoscaler_workbench.fakes.world.ec2.error_codes import Ec2Error

FLEET_ID_TAG = "aws:ec2:fleet-id"  # on everything that CreateFleet launches
_RESERVED = "aws:"


def check_tags(keys: Iterable[str]) -> None:
    """Refuse keys that nobody but EC2 may write."""
    if reserved := next((key for key in keys if key.lower().startswith(_RESERVED)), ""):
        text = f"Value ( {reserved} ) for parameter key is invalid. Tag keys starting with 'aws:' are reserved for internal use"
        raise Ec2Error("InvalidParameterValue", text)


def keys_of(request: dict[str, Any]) -> list[str]:
    """The keys of all tags that a request, or a launch template, is to write."""
    return [tag["Key"] for specification in request.get("TagSpecifications", []) for tag in specification["Tags"]]
