"""The Account port on EC2 and Service Quotas."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from autoscaler.adapters.aws import pages
from autoscaler.adapters.launch_templates import check_templates
from autoscaler.domain.quotas import Quota

if TYPE_CHECKING:
    from autoscaler.domain.model import Fleet, Offering

_VALUES_A_FILTER = 200


class AwsAccount:
    """One region of one account. The clients are made at the first use."""

    def __init__(self, ec2: Callable[[], Any], service_quotas: Callable[[], Any], fleet: Fleet) -> None:
        """Keep whose agents are to be launched there."""
        self._ec2 = ec2
        self._service_quotas = service_quotas
        self._fleet = fleet

    def not_offered(self) -> Mapping[str, tuple[str, ...]]:
        """Two questions for all pools: where their subnets are, and what can be had there."""
        wanted = sorted({offering.subnet for offering in self._offerings()} - {""})
        zones, offered = self._zones(wanted), self._offered(self._types())
        found = {name: tuple(_lacking(pool.offerings, zones, offered)) for name, pool in self._fleet.pools.items()}
        return {name: lines for name, lines in found.items() if lines}

    def unsafe_templates(self) -> Mapping[str, tuple[str, ...]]:
        """One question a pool: EC2 tells of the versions of one template at a time."""
        found = check_templates(self._fleet, self._ec2())
        return {name: tuple(lines) for name, lines in found.items() if lines}

    def vcpus(self) -> Mapping[str, int]:
        """Ask with a filter: a type that EC2 does not know would fail the others."""
        found = self._filtered("describe_instance_types", "instance-type", self._types())
        return {raw["InstanceType"]: raw["VCpuInfo"]["DefaultVCpus"] for page in found for raw in page["InstanceTypes"]}

    def quotas(self) -> tuple[Quota, ...]:
        """All of EC2's; which of them count vCPUs, their names say."""
        found = pages(self._service_quotas(), "list_service_quotas", {"ServiceCode": "ec2"})
        return tuple(Quota(name=raw["QuotaName"], vcpus=raw["Value"]) for page in found for raw in page["Quotas"])

    def _offerings(self) -> Iterator[Offering]:
        for pool in self._fleet.pools.values():
            yield from pool.offerings

    def _types(self) -> list[str]:
        return sorted({offering.instance_type for offering in self._offerings()})

    def _zones(self, subnets: list[str]) -> dict[str, str]:
        found = self._filtered("describe_subnets", "subnet-id", subnets)
        return {raw["SubnetId"]: raw["AvailabilityZone"] for page in found for raw in page["Subnets"]}

    def _offered(self, types: list[str]) -> set[tuple[str, str]]:
        """Instance type and zone, of all that can be had."""
        found = self._filtered("describe_instance_type_offerings", "instance-type", types, LocationType="availability-zone")
        return {(raw["InstanceType"], raw["Location"]) for page in found for raw in page["InstanceTypeOfferings"]}

    def _filtered(self, method: str, name: str, values: list[str], **more: str) -> Iterator[Any]:
        """Pages of what has one of these values; nothing is asked where there are none."""
        for start in range(0, len(values), _VALUES_A_FILTER):
            filters = [{"Name": name, "Values": values[start : start + _VALUES_A_FILTER]}]
            yield from pages(self._ec2(), method, {"Filters": filters, **more})


def _lacking(offerings: Iterable[Offering], zones: Mapping[str, str], offered: Collection[tuple[str, str]]) -> Iterator[str]:
    for subnet, kind in dict.fromkeys((offering.subnet, offering.instance_type) for offering in offerings):
        if subnet and subnet not in zones:
            yield f"there is no subnet {subnet}"
        elif subnet and (kind, zones[subnet]) not in offered:
            yield f"{kind} cannot be had in {subnet} ({zones[subnet]})"
        elif not subnet and not any(known == kind for known, _ in offered):
            yield f"{kind} cannot be had in this region"
