"""Checks whether each pool's launch template is safe, for ``validate --live`` and the doctor."""

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from autoscaler.adapters.aws import code_of
from autoscaler.adapters.images import Images, image_findings, read_images
from autoscaler.adapters.routes import Way, read_ways, route_findings
from autoscaler.adapters.volumes import volume_findings
from autoscaler.domain.facts.fleet import Fleet, Pool
from autoscaler.domain.facts.pools import pool_at_its_widest
from autoscaler.errors import ConfigError, TransientError

USER_DATA_BYTES = 16 * 1024  # what EC2 takes, before base64


@dataclass(frozen=True, slots=True, kw_only=True)
class Templates:
    """The data of each pool's launch template, None where there is no such template or version, and what EC2 knows of what it names."""

    data: Mapping[str, dict[str, Any] | None]
    images: Images
    ways: Mapping[str, Way]


def check_templates(fleet: Fleet, client: Any, launched: Mapping[str, str] | None = None) -> dict[str, list[str]]:
    """Return findings by pool, each a line that says what to change. `ConfigError` where AWS cannot be reached.

    ``launched``: the images of pools that a parameter names; without them, those of the launch templates are checked.
    """
    return findings_of(fleet, read_templates(fleet, client, launched))


def findings_of(fleet: Fleet, templates: Templates) -> dict[str, list[str]]:
    """Return findings by pool."""
    return {
        name: list(_findings(fleet, fleet.pools[name], data, templates.images, templates.ways)) for name, data in templates.data.items()
    }


def images_of(templates: Templates) -> dict[str, Mapping[str, Any]]:
    """Return the image of each pool as EC2 describes it; pools whose image is not known are left out."""
    ids = {name: data.get("ImageId", "") for name, data in templates.data.items() if data}
    return {name: templates.images.images[image] for name, image in ids.items() if image in templates.images.images}


def read_templates(fleet: Fleet, client: Any, launched: Mapping[str, str] | None = None) -> Templates:
    """Ask EC2 for the launch templates, and for the images and subnets that they name."""
    told = {pool.name: _with_image(_data(client, pool), (launched or {}).get(pool.name)) for pool in fleet.pools.values()}
    offerings = [offering for pool in fleet.pools.values() for offering in pool.offerings]
    ids = {data["ImageId"] for data in told.values() if data and data.get("ImageId", "").startswith("ami-")}
    try:
        images = read_images(client, ids, {offering.instance_type for offering in offerings})
        ways = read_ways(client, {offering.subnet for offering in offerings} - {""})
    except BotoCoreError as error:
        raise ConfigError(f"AWS cannot be asked: {error}") from error
    return Templates(data=told, images=images, ways=ways)


def _with_image(data: dict[str, Any] | None, image: str | None) -> dict[str, Any] | None:
    return data | {"ImageId": image} if data is not None and image else data


def volume_keys(fleet: Fleet, client: Any) -> dict[str, str]:
    """Return the key of their own that the launch templates of pools with a warm pool encrypt volumes with."""
    told = {pool.name: _data(client, pool) for pool in fleet.pools.values() if pool_at_its_widest(pool).warm_pool}
    keys = {name: _key_of(data) for name, data in told.items() if data}
    return {name: key for name, key in keys.items() if key}


def _key_of(data: dict[str, Any]) -> str:
    volumes = [mapping.get("Ebs", {}) for mapping in data.get("BlockDeviceMappings", [])]
    return next((str(volume["KmsKeyId"]) for volume in volumes if volume.get("KmsKeyId")), "")


def _data(client: Any, pool: Pool) -> dict[str, Any] | None:
    """Return the template's data; None where there is no such template or version."""
    key = "LaunchTemplateId" if pool.launch_template.startswith("lt-") else "LaunchTemplateName"
    try:
        answer = client.describe_launch_template_versions(**{key: pool.launch_template}, Versions=[pool.launch_template_version])
    except ClientError as error:
        code = code_of(error)
        if code.startswith("InvalidLaunchTemplate"):
            return None
        raise TransientError(f"DescribeLaunchTemplateVersions: {code}") from error
    except BotoCoreError as error:
        raise ConfigError(f"AWS cannot be asked: {error}") from error
    versions = answer["LaunchTemplateVersions"]
    return versions[0]["LaunchTemplateData"] if versions else None


def _findings(fleet: Fleet, pool: Pool, data: dict[str, Any] | None, images: Images, ways: Mapping[str, Way]) -> Iterator[str]:
    if data is None:
        yield "there is no such launch template, or not that version of it"
        return
    metadata = data.get("MetadataOptions", {})
    if metadata.get("HttpTokens") != "required":
        yield "MetadataOptions.HttpTokens must be required: any build could otherwise become the instance"
    if metadata.get("HttpPutResponseHopLimit") != 1:
        yield "MetadataOptions.HttpPutResponseHopLimit must be 1: builds in containers could otherwise become the instance"
    if data.get("InstanceInitiatedShutdownBehavior") != "terminate":
        yield "InstanceInitiatedShutdownBehavior must be terminate: an agent that powers itself off would otherwise stay, stopped"
    if not data.get("IamInstanceProfile"):
        yield "IamInstanceProfile is missing: without the agent role an instance cannot ask who it is"
    if data.get("DisableApiTermination"):
        yield "DisableApiTermination must be off: the autoscaler could not terminate what it launched"
    yield from _market(pool, data)
    yield from _storage(fleet, data)
    yield from _network(data)
    yield from _user_data(data)
    if pool_at_its_widest(pool).warm_pool and data.get("DisableApiStop"):
        yield "DisableApiStop must be off: no agent could be stopped (warm_pool)"
    yield from image_findings(pool, data, images)
    yield from volume_findings(pool, data, images.images.get(data.get("ImageId", "")))
    yield from route_findings(pool, data, ways)


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
    for mapping in data.get("BlockDeviceMappings", []):
        if "Ebs" in mapping and not mapping["Ebs"].get("Encrypted"):
            yield f"BlockDeviceMappings {mapping.get('DeviceName', '')}: Ebs.Encrypted must be true"
    tags = [tag for spec in data.get("TagSpecifications", []) if spec["ResourceType"] == "volume" for tag in spec["Tags"]]
    if {"Key": "autoscaler:fleet", "Value": fleet.name} not in tags:
        other = next((f", not {tag['Value']}: the template is of that fleet" for tag in tags if tag["Key"] == "autoscaler:fleet"), "")
        yield f"TagSpecifications must tag volumes with autoscaler:fleet={fleet.name}{other or ': EC2 Fleet cannot'}"


def _network(data: dict[str, Any]) -> Iterator[str]:
    for interface in data.get("NetworkInterfaces", []):
        if interface.get("SubnetId"):
            yield "NetworkInterfaces.SubnetId must not be set: the fleet file's subnets decide"


def _user_data(data: dict[str, Any]) -> Iterator[str]:
    encoded = data.get("UserData")
    if not encoded:
        yield "UserData is missing: nothing would make an agent of the instance"
        return
    try:
        size = len(base64.b64decode(encoded, validate=True))
    except binascii.Error:
        yield "UserData is not base64"
        return
    if size > USER_DATA_BYTES:
        yield f"UserData has {size} bytes, EC2 takes {USER_DATA_BYTES}"
