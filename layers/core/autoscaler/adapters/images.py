"""Checks whether each pool's image fits its platform and instance types."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from autoscaler.adapters.aws import filtered
from autoscaler.domain.facts.fleet import Platform, Pool
from autoscaler.domain.facts.pools import pool_at_its_widest


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    """Images by id, and the architectures of instance types."""

    images: Mapping[str, Any]
    architectures: Mapping[str, Collection[str]]


def read_images(client: Any, ids: Iterable[str], types: Iterable[str]) -> Images:
    """Ask twice for all pools; what EC2 does not know is left out."""
    images = filtered(client, "describe_images", "image-id", sorted(set(ids)))
    kinds = filtered(client, "describe_instance_types", "instance-type", sorted(set(types)))
    return Images(
        images={raw["ImageId"]: raw for page in images for raw in page["Images"]},
        architectures={
            raw["InstanceType"]: raw["ProcessorInfo"]["SupportedArchitectures"] for page in kinds for raw in page["InstanceTypes"]
        },
    )


def image_findings(pool: Pool, data: Mapping[str, Any], known: Images) -> Iterator[str]:
    """Say what is wrong with the image of a launch template, a line each."""
    image_id = data.get("ImageId", "")
    if not image_id:
        yield "ImageId is missing: there is nothing to boot"
        return
    if not image_id.startswith("ami-"):
        yield from _by_its_name(pool, image_id)
        return
    image = known.images.get(image_id)
    if image is None:
        yield f"there is no image {image_id}, or this account may not use it"
        return
    if image["State"] != "available":
        yield f"the image {image_id} is {image['State']}"
    platform = Platform.WINDOWS if image.get("Platform") == "windows" else Platform.LINUX
    if platform != pool.platform:
        yield f"the image {image_id} is of {platform}, the pool's platform is {pool.platform}"
    if pool_at_its_widest(pool).warm_pool and image.get("RootDeviceType", "ebs") != "ebs":
        yield f"the image {image_id} has its root on an instance store: no agent can be stopped (warm_pool), all are terminated"
    yield from _root(image, data)
    for kind in dict.fromkeys(offering.instance_type for offering in pool.offerings):
        if image["Architecture"] not in known.architectures.get(kind, [image["Architecture"]]):
            yield f"{kind} cannot boot the image {image_id}: that is of {image['Architecture']}"


def _by_its_name(pool: Pool, image_id: str) -> Iterator[str]:
    """Judge resolve:ssm:..., which EC2 looks up at each launch: only its name says what it is."""
    if "windows" in image_id.lower() and pool.platform is not Platform.WINDOWS:
        yield f"the image {image_id} is of windows by its name, the pool's platform is {pool.platform}"


def _root(image: Mapping[str, Any], data: Mapping[str, Any]) -> Iterator[str]:
    root = image.get("RootDeviceName", "")
    if root not in {mapping.get("DeviceName") for mapping in data.get("BlockDeviceMappings", [])}:
        yield f"BlockDeviceMappings has no {root}, the root device of {image['ImageId']}: its volume is not encrypted"
