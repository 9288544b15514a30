"""Instances of fleets that no stack has any more: of another fleet name, or of a stack that was deleted with agents at work."""

from collections.abc import Mapping
from typing import Any

from autoscaler.adapters.aws import pages
from autoscaler.adapters.ec2 import FLEET_TAG

_THERE = ["pending", "running", "stopping", "stopped"]
_FLEET_NAME = "FleetName"  # the parameter of each stack


def instances_of_no_stack(ec2: Any, cloudformation: Any, fleet: str) -> Mapping[str, tuple[str, ...]]:
    """Return by fleet the instances of this region whose fleet is neither this one nor that of any stack. `TransientError`.

    Stacks are asked for only if there are instances of another fleet.
    """
    others: dict[str, list[str]] = {}
    filters = [{"Name": "tag-key", "Values": [FLEET_TAG]}, {"Name": "instance-state-name", "Values": _THERE}]
    for page in pages(ec2, "describe_instances", {"Filters": filters}):
        for raw in (raw for reservation in page["Reservations"] for raw in reservation["Instances"]):
            name = next((tag["Value"] for tag in raw.get("Tags", []) if tag["Key"] == FLEET_TAG), fleet)
            if name != fleet:
                others.setdefault(name, []).append(raw["InstanceId"])
    stacks = _fleets_of_stacks(cloudformation) if others else set()
    return {name: tuple(sorted(ids)) for name, ids in sorted(others.items()) if name not in stacks}


def _fleets_of_stacks(cloudformation: Any) -> set[str]:
    stacks = (stack for page in pages(cloudformation, "describe_stacks", {}) for stack in page.get("Stacks", []))
    parameters = (parameter for stack in stacks for parameter in stack.get("Parameters", []))
    return {parameter.get("ParameterValue", "") for parameter in parameters if parameter["ParameterKey"] == _FLEET_NAME}
