"""Implements the Account port on EC2, Service Quotas, IAM and Lambda."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from autoscaler.adapters.aws import code_of, filtered, pages, translated, zones
from autoscaler.adapters.launch_templates import check_templates, volume_keys
from autoscaler.adapters.other_fleets import instances_of_no_stack
from autoscaler.domain.report.quotas import Executions, Quota

if TYPE_CHECKING:
    from autoscaler.domain.facts.fleet import Fleet, Offering

_SPOT_ROLE = "AWSServiceRoleForEC2Spot"


class AwsAccount:
    """One region of one account. The clients are made at the first use."""

    def __init__(self, clients: Callable[[str], Any], fleet: Fleet, public: int = 1, for_each: int | None = None) -> None:
        """Keep whose agents are launched there; ``clients`` makes a service's client, ``public`` and ``for_each``: of `Executions`."""
        self._clients = clients
        self._fleet = fleet
        self._public, self._for_each = public, for_each

    def not_offered(self) -> Mapping[str, tuple[str, ...]]:
        """Ask twice for all pools: where their subnets are, and which types are offered there."""
        wanted = sorted({offering.subnet for offering in self._offerings()} - {""})
        zone_of, offered = zones(self._clients("ec2"), wanted), self._offered(self._types())
        found = {name: tuple(_lacking(pool.offerings, zone_of, offered)) for name, pool in self._fleet.pools.items()}
        return {name: lines for name, lines in found.items() if lines}

    def unsafe_templates(self, images: Mapping[str, str]) -> Mapping[str, tuple[str, ...]]:
        """Ask once a pool: EC2 describes the versions of one template at a time."""
        found = check_templates(self._fleet, self._clients("ec2"), images)
        return {name: tuple(lines) for name, lines in found.items() if lines}

    def volume_keys(self) -> Mapping[str, str]:
        """Ask once a pool that stops agents, and nothing where none does."""
        return volume_keys(self._fleet, self._clients("ec2"))

    def vcpus(self) -> Mapping[str, int]:
        """Ask with a filter: a type that EC2 does not know would fail the others."""
        found = filtered(self._clients("ec2"), "describe_instance_types", "instance-type", self._types())
        return {raw["InstanceType"]: raw["VCpuInfo"]["DefaultVCpus"] for page in found for raw in page["InstanceTypes"]}

    def quotas(self) -> tuple[Quota, ...]:
        """Ask for all quotas of EC2; their names say which count vCPUs."""
        found = pages(self._clients("service-quotas"), "list_service_quotas", {"ServiceCode": "ec2"})
        return tuple(Quota(name=raw["QuotaName"], vcpus=raw["Value"]) for page in found for raw in page["Quotas"])

    def instances_of_no_stack(self) -> Mapping[str, tuple[str, ...]]:
        """Ask for all instances with the tag, and for stacks if any is of another fleet."""
        return instances_of_no_stack(self._clients("ec2"), self._clients("cloudformation"), self._fleet.name)

    def has_spot_role(self) -> bool:
        """Ask IAM for the role by its name."""
        with translated("GetRole"):
            try:
                self._clients("iam").get_role(RoleName=_SPOT_ROLE)
            except ClientError as error:
                if code_of(error) != "NoSuchEntity":
                    raise
                return False
        return True

    def executions(self) -> Executions:
        """Ask Lambda for the account's limit."""
        with translated("GetAccountSettings"):
            limits = self._clients("lambda").get_account_settings()["AccountLimit"]
        limit, unreserved = int(limits["ConcurrentExecutions"]), int(limits["UnreservedConcurrentExecutions"])
        return Executions(limit=limit, unreserved=unreserved, public=self._public, for_each=self._for_each)

    def _offerings(self) -> Iterator[Offering]:
        for pool in self._fleet.pools.values():
            yield from pool.offerings

    def _types(self) -> list[str]:
        return sorted({offering.instance_type for offering in self._offerings()})

    def _offered(self, types: list[str]) -> set[tuple[str, str]]:
        """Return instance type and zone of everything that is offered."""
        found = filtered(self._clients("ec2"), "describe_instance_type_offerings", "instance-type", types, LocationType="availability-zone")
        return {(raw["InstanceType"], raw["Location"]) for page in found for raw in page["InstanceTypeOfferings"]}


def _lacking(offerings: Iterable[Offering], zones: Mapping[str, str], offered: Collection[tuple[str, str]]) -> Iterator[str]:
    for subnet, kind in dict.fromkeys((offering.subnet, offering.instance_type) for offering in offerings):
        if subnet and subnet not in zones:
            yield f"there is no subnet {subnet}"
        elif subnet and (kind, zones[subnet]) not in offered:
            yield f"{kind} cannot be had in {subnet} ({zones[subnet]})"
        elif not subnet and not any(known == kind for known, _ in offered):
            yield f"{kind} cannot be had in this region"
