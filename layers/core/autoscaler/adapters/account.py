"""Reads what the fleet needs of the AWS account, and finds what is wrong with it: quotas, launch templates, images, routes."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError

from autoscaler.adapters.aws import filtered, pages, template_data, translated, unless, zones
from autoscaler.adapters.ec2 import instances_of_no_stack, volume_findings
from autoscaler.domain.facts.fleet import Fleet, Platform, Pool
from autoscaler.domain.facts.pools import pool_at_its_widest
from autoscaler.domain.report.quotas import Executions, Quota
from autoscaler.errors import ConfigError

if TYPE_CHECKING:
    from autoscaler.domain.facts.fleet import Offering


# Checks whether each pool's image fits its platform and instance types.


def image_findings(pool: Pool, data: Mapping[str, Any], known: Templates) -> Iterator[str]:
    """Say what is wrong with the image of a launch template, a line each."""
    image_id = data.get("ImageId", "")
    if not image_id:
        yield "ImageId is missing: there is nothing to boot"
        return
    if not image_id.startswith("ami-"):
        if "windows" in image_id.lower() and pool.platform is not Platform.WINDOWS:
            yield f"the image {image_id} is of windows by its name, the pool's platform is {pool.platform}"
        return
    image = known.images.get(image_id)
    if image is None:
        yield f"there is no image {image_id}, or this account may not use it"
        return
    platform = Platform.WINDOWS if image.get("Platform") == "windows" else Platform.LINUX
    is_stopped, is_on_ebs = pool_at_its_widest(pool).warm_pool, image.get("RootDeviceType", "ebs") == "ebs"
    root, devices = image.get("RootDeviceName", ""), {mapping.get("DeviceName") for mapping in data.get("BlockDeviceMappings", [])}
    no_stop = "has its root on an instance store: no agent can be stopped (warm_pool), all are terminated"
    yield from _broken(
        (image["State"] != "available", f"the image {image_id} is {image['State']}"),
        (platform != pool.platform, f"the image {image_id} is of {platform}, the pool's platform is {pool.platform}"),
        (is_stopped and not is_on_ebs, f"the image {image_id} {no_stop}"),
        (root not in devices, f"BlockDeviceMappings has no {root}, the root device of {image['ImageId']}: its volume is not encrypted"),
    )
    for kind in dict.fromkeys(offering.instance_type for offering in pool.offerings):
        if image["Architecture"] not in known.architectures.get(kind, [image["Architecture"]]):
            yield f"{kind} cannot boot the image {image_id}: that is of {image['Architecture']}"


def _broken(*rules: tuple[object, str]) -> Iterator[str]:
    """Yield the line of each rule that is broken. A rule: whether it is, and its line."""
    return (line for is_broken, line in rules if is_broken)


# Checks how agents get out of each subnet: by a public address of their own, or through a gateway.


_EVERYWHERE = "0.0.0.0/0"
_TARGETS = ("GatewayId", "NatGatewayId", "TransitGatewayId", "NetworkInterfaceId", "VpcPeeringConnectionId", "EgressOnlyInternetGatewayId")


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """The way out of a subnet. ``target``: its default route, or ""; ``gives_addresses``: public ones, unless the template says no."""

    target: str
    gives_addresses: bool

    @property
    def needs_address(self) -> bool:
        """Tell whether only instances with a public address get out."""
        return self.target.startswith("igw-")


def read_ways(client: Any, subnets: Iterable[str]) -> dict[str, Way]:
    """Return the way out of each subnet: by its own route table, else by its VPC's main one."""
    found = [raw for page in filtered(client, "describe_subnets", "subnet-id", sorted(set(subnets))) for raw in page["Subnets"]]
    own: dict[str, Any] = {}
    for page in filtered(client, "describe_route_tables", "association.subnet-id", sorted(raw["SubnetId"] for raw in found)):
        own |= {link["SubnetId"]: table for table in page["RouteTables"] for link in table["Associations"] if "SubnetId" in link}
    vpcs = sorted({raw["VpcId"] for raw in found if raw["SubnetId"] not in own})
    filters = [{"Name": "vpc-id", "Values": vpcs}, {"Name": "association.main", "Values": ["true"]}]
    answer = pages(client, "describe_route_tables", {"Filters": filters}) if vpcs else ()
    main = {table["VpcId"]: table for page in answer for table in page["RouteTables"]}
    return {
        raw["SubnetId"]: Way(
            target=_default_target(own.get(raw["SubnetId"]) or main.get(raw["VpcId"], {})),
            gives_addresses=raw.get("MapPublicIpOnLaunch", False),
        )
        for raw in found
    }


def route_findings(pool: Pool, data: Mapping[str, Any], ways: Mapping[str, Way]) -> Iterator[str]:
    """Say from which subnets an agent of this launch template would reach nobody, a line each."""
    interfaces = data.get("NetworkInterfaces", [])
    told = interfaces[0].get("AssociatePublicIpAddress") if interfaces else None
    for subnet in dict.fromkeys(offering.subnet for offering in pool.offerings):
        if (way := ways.get(subnet)) is None:
            continue  # the launch template's own, or none that there is, which is said elsewhere
        has_address = way.gives_addresses if told is None else told
        if not way.target:
            yield f"{subnet} has no default route: agents there cannot reach register_agent, for whose URL there is no VPC endpoint"
        elif way.needs_address and not has_address:
            gateway = "leads out through an internet gateway"
            yield f"{subnet} {gateway}: agents there reach nothing without a public address (AgentPublicIp=true, or a NAT)"


def _default_target(table: Mapping[str, Any]) -> str:
    for route in table.get("Routes", []):
        if route.get("DestinationCidrBlock") == _EVERYWHERE and route.get("State", "active") == "active":
            return next((str(route[target]) for target in _TARGETS if route.get(target)), "")
    return ""


# Checks whether each pool's launch template is safe, for ``validate --live`` and the doctor.


USER_DATA_BYTES = 16 * 1024  # what EC2 takes, before base64


@dataclass(frozen=True, slots=True, kw_only=True)
class Templates:
    """The data of each pool's launch template, None where there is no such template or version, and what EC2 knows of what it names."""

    data: Mapping[str, dict[str, Any] | None]
    images: Mapping[str, Any]  # by id
    architectures: Mapping[str, Collection[str]]  # of instance types
    ways: Mapping[str, Way]


def findings_of(fleet: Fleet, templates: Templates) -> dict[str, list[str]]:
    """Return findings by pool, each a line that says what to change."""
    return {name: list(_findings(fleet, fleet.pools[name], data, templates)) for name, data in templates.data.items()}


def read_templates(fleet: Fleet, client: Any, launched: Mapping[str, str]) -> Templates:
    """Ask EC2 for the launch templates, and for the images and subnets that they name. `ConfigError` where AWS cannot be reached.

    ``launched``: the images of pools that a parameter names; of the others, those of the launch templates are checked.
    """
    templates = {pool.name: _data(client, pool, launched.get(pool.name, "")) for pool in fleet.pools.values()}
    offerings = [offering for pool in fleet.pools.values() for offering in pool.offerings]
    ids = {data["ImageId"] for data in templates.values() if data and data.get("ImageId", "").startswith("ami-")}
    described = filtered(client, "describe_images", "image-id", sorted(ids))
    images = {raw["ImageId"]: raw for page in described for raw in page["Images"]}
    kinds = filtered(client, "describe_instance_types", "instance-type", sorted({offering.instance_type for offering in offerings}))
    architectures = {raw["InstanceType"]: raw["ProcessorInfo"]["SupportedArchitectures"] for page in kinds for raw in page["InstanceTypes"]}
    ways = read_ways(client, {offering.subnet for offering in offerings} - {""})
    return Templates(data=templates, images=images, architectures=architectures, ways=ways)


def _data(client: Any, pool: Pool, image: str = "") -> dict[str, Any] | None:
    """Return the template's data, with the image that is launched instead of its own; None where there is no such template or version."""
    with translated("DescribeLaunchTemplateVersions"):
        try:
            data = template_data(client, pool.launch_template, pool.launch_template_version)
        except BotoCoreError as error:
            raise ConfigError(f"AWS cannot be asked: {error}") from error
    return data | {"ImageId": image} if data is not None and image else data


def _findings(fleet: Fleet, pool: Pool, data: dict[str, Any] | None, known: Templates) -> Iterator[str]:
    if data is None:
        yield "there is no such launch template, or not that version of it"
        return
    metadata, behavior = data.get("MetadataOptions", {}), data.get("InstanceInitiatedShutdownBehavior")
    is_stopped = pool_at_its_widest(pool).warm_pool
    others = "builds in containers could otherwise become the instance"
    stays = "an agent that powers itself off would otherwise stay, stopped"
    yield from _broken(
        (
            metadata.get("HttpTokens") != "required",
            "MetadataOptions.HttpTokens must be required: any build could otherwise become the instance",
        ),
        (metadata.get("HttpPutResponseHopLimit") != 1, f"MetadataOptions.HttpPutResponseHopLimit must be 1: {others}"),
        (behavior != "terminate", f"InstanceInitiatedShutdownBehavior must be terminate: {stays}"),
        (not data.get("IamInstanceProfile"), "IamInstanceProfile is missing: without the agent role an instance cannot ask who it is"),
        (data.get("DisableApiTermination"), "DisableApiTermination must be off: the autoscaler could not terminate what it launched"),
    )
    yield from (*_market(pool, data), *_storage(fleet, data))
    subnet = "NetworkInterfaces.SubnetId must not be set: the fleet file's subnets decide"
    yield from (subnet for interface in data.get("NetworkInterfaces", []) if interface.get("SubnetId"))
    yield from _user_data(data)
    if is_stopped and data.get("DisableApiStop"):
        yield "DisableApiStop must be off: no agent could be stopped (warm_pool)"
    yield from image_findings(pool, data, known)
    yield from volume_findings(pool, data, known.images.get(data.get("ImageId", "")))
    yield from route_findings(pool, data, known.ways)


def _market(pool: Pool, data: dict[str, Any]) -> Iterator[str]:
    """CreateFleet names no reservation: the launch template does, and only that of a pool of reserved capacity."""
    named = data.get("CapacityReservationSpecification", {}).get("CapacityReservationTarget", {}).get("CapacityReservationId", "")
    market, capacity = data.get("InstanceMarketOptions", {}).get("MarketType", ""), pool.capacity
    if named != (capacity.id if capacity else ""):
        wanted = f"must be {capacity.id} (capacity_reservation)" if capacity else "must not be set: the pool has no capacity_reservation"
        yield f"CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId ({named or 'missing'}) {wanted}"
    if capacity and capacity.block:
        if market != "capacity-block":
            yield "InstanceMarketOptions.MarketType must be capacity-block: EC2 launches into a block in no other way"
    elif data.get("InstanceMarketOptions"):
        yield "InstanceMarketOptions must not be set: the fleet file's market decides"


def _storage(fleet: Fleet, data: dict[str, Any]) -> Iterator[str]:
    plain = (one for one in data.get("BlockDeviceMappings", []) if "Ebs" in one and not one["Ebs"].get("Encrypted"))
    yield from (f"BlockDeviceMappings {mapping.get('DeviceName', '')}: Ebs.Encrypted must be true" for mapping in plain)
    tags = [tag for spec in data.get("TagSpecifications", []) if spec["ResourceType"] == "volume" for tag in spec["Tags"]]
    if {"Key": "autoscaler:fleet", "Value": fleet.name} not in tags:
        other = next((f", not {tag['Value']}: the template is of that fleet" for tag in tags if tag["Key"] == "autoscaler:fleet"), "")
        yield f"TagSpecifications must tag volumes with autoscaler:fleet={fleet.name}{other or ': EC2 Fleet cannot'}"


def _user_data(data: dict[str, Any]) -> Iterator[str]:
    encoded, size = data.get("UserData"), -1
    with suppress(binascii.Error):
        size = len(base64.b64decode(encoded or "", validate=True))
    yield from _broken(
        (not encoded, "UserData is missing: nothing would make an agent of the instance"),
        (size < 0, "UserData is not base64"),
        (size > USER_DATA_BYTES, f"UserData has {size} bytes, EC2 takes {USER_DATA_BYTES}"),
    )


# Implements the Account port on EC2, Service Quotas, IAM and Lambda.


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
        subnets = sorted({offering.subnet for pool in self._fleet.pools.values() for offering in pool.offerings} - {""})
        zone_of, kinds = zones(self._clients("ec2"), subnets), self._types()
        places = filtered(
            self._clients("ec2"), "describe_instance_type_offerings", "instance-type", kinds, LocationType="availability-zone"
        )
        offered = {(raw["InstanceType"], raw["Location"]) for page in places for raw in page["InstanceTypeOfferings"]}
        found = {name: tuple(_lacking(pool.offerings, zone_of, offered)) for name, pool in self._fleet.pools.items()}
        return {name: lines for name, lines in found.items() if lines}

    def unsafe_templates(self, images: Mapping[str, str]) -> Mapping[str, tuple[str, ...]]:
        """Ask once a pool: EC2 describes the versions of one template at a time."""
        findings = findings_of(self._fleet, read_templates(self._fleet, self._clients("ec2"), images))
        return {name: tuple(lines) for name, lines in findings.items() if lines}

    def volume_keys(self) -> Mapping[str, str]:
        """Ask for the launch template of each pool that stops agents, and nothing where none does."""
        stopping = [pool for pool in self._fleet.pools.values() if pool_at_its_widest(pool).warm_pool]
        templates = {pool.name: _data(self._clients("ec2"), pool) or {} for pool in stopping}
        keys = {
            name: [mapping.get("Ebs", {}).get("KmsKeyId") for mapping in data.get("BlockDeviceMappings", [])]
            for name, data in templates.items()
        }
        return {name: str(next(filter(None, found))) for name, found in keys.items() if any(found)}

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
        with translated("GetRole"), unless("NoSuchEntity"):
            self._clients("iam").get_role(RoleName=_SPOT_ROLE)
            return True
        return False

    def executions(self) -> Executions:
        """Ask Lambda for the account's limit."""
        with translated("GetAccountSettings"):
            limits = self._clients("lambda").get_account_settings()["AccountLimit"]
        return Executions(
            limit=int(limits["ConcurrentExecutions"]),
            unreserved=int(limits["UnreservedConcurrentExecutions"]),
            public=self._public,
            for_each=self._for_each,
        )

    def _types(self) -> list[str]:
        return sorted({offering.instance_type for pool in self._fleet.pools.values() for offering in pool.offerings})


def _lacking(offerings: Iterable[Offering], zones: Mapping[str, str], offered: Collection[tuple[str, str]]) -> Iterator[str]:
    for subnet, kind in dict.fromkeys((offering.subnet, offering.instance_type) for offering in offerings):
        if subnet and subnet not in zones:
            yield f"there is no subnet {subnet}"
        elif subnet and (kind, zones[subnet]) not in offered:
            yield f"{kind} cannot be had in {subnet} ({zones[subnet]})"
        elif not subnet and not any(known == kind for known, _ in offered):
            yield f"{kind} cannot be had in this region"


# Implements the Images port on the Parameter Store of Systems Manager.


# https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetParameters.html
_NAMES_A_CALL = 10


@dataclass(frozen=True, slots=True)
class SsmImages:
    """Images that parameters name. ``client`` makes the client at the first use."""

    client: Callable[[], Any]

    def current(self, parameters: Collection[str]) -> Mapping[str, str]:
        """Ask for ten at a time; SSM names the unknown ones beside the others, and fails all for one that may not be read."""
        names, images = sorted(set(parameters)), dict[str, str]()
        for start in range(0, len(names), _NAMES_A_CALL):
            with translated("GetParameters"):
                answer = self.client().get_parameters(Names=names[start : start + _NAMES_A_CALL])
            images |= {raw["Name"]: raw["Value"] for raw in answer["Parameters"] if raw["Value"].startswith("ami-")}
        return images
