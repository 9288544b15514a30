"""Volumes of a pool's agents: what its launch template and its image make, against what the fleet file counts."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError

from autoscaler.adapters.aws import code_of, filtered, translated
from autoscaler.domain.facts.fleet import Pool, PoolVolumes, Volume
from autoscaler.domain.facts.pools import Source

_TEMPLATE_KEYS = {True: "LaunchTemplateId", False: "LaunchTemplateName"}


def read_volumes(client: Any, of: Collection[Source]) -> dict[Source, tuple[Volume, ...]]:
    """Ask EC2 for launch templates and images; what it does not know is left out."""
    templates = {source: data for source in of if (data := _data(client, source)) is not None}
    used = {source: source.image or str(data.get("ImageId", "")) for source, data in templates.items()}
    answers = filtered(client, "describe_images", "image-id", sorted({image for image in used.values() if image.startswith("ami-")}))
    images = {raw["ImageId"]: raw for page in answers for raw in page["Images"]}
    return {source: volumes_of(data, images.get(used[source])) for source, data in templates.items()}


def _data(client: Any, source: Source) -> Mapping[str, Any] | None:
    key = _TEMPLATE_KEYS[source.template.startswith("lt-")]
    with translated("DescribeLaunchTemplateVersions"):
        try:
            answer = client.describe_launch_template_versions(**{key: source.template}, Versions=[source.version])
        except ClientError as error:
            if not code_of(error).startswith("InvalidLaunchTemplate"):
                raise
            return None
    versions = answer["LaunchTemplateVersions"]
    return versions[0]["LaunchTemplateData"] if versions else None


def volumes_of(data: Mapping[str, Any], image: Mapping[str, Any] | None) -> tuple[Volume, ...]:
    """List the volumes as EC2 makes them: the template's word goes before the image's, for each device."""
    volumes: dict[str, Volume] = {}
    for mapping in (*(image or {}).get("BlockDeviceMappings", ()), *data.get("BlockDeviceMappings", ())):
        device = str(mapping.get("DeviceName", ""))
        if "NoDevice" in mapping:
            volumes.pop(device, None)
        elif "Ebs" in mapping:
            before, ebs = volumes.get(device, Volume(device=device)), mapping["Ebs"]
            size = ebs.get("VolumeSize")
            gib = before.gib if size is None else float(size)
            volumes[device] = Volume(device=device, gib=gib, kind=str(ebs.get("VolumeType") or before.kind))
    return tuple(volumes[device] for device in sorted(volumes))


def volume_findings(pool: Pool, data: Mapping[str, Any], image: Mapping[str, Any] | None) -> Iterator[str]:
    """Say where the volumes are not as large as the fleet file counts them. A size that neither tells is of a snapshot that nobody read.

    Nothing is wrong if the functions count what EC2 says, and it says every size.
    """
    volumes = PoolVolumes(source="", volumes=volumes_of(data, image))
    gib = sum(volume.gib or 0.0 for volume in volumes.volumes)
    if pool.volume_gib is None or (volumes.is_whole and pool.volume_usd_per_gib_month is not None):
        return
    if gib > pool.volume_gib or (volumes.is_whole and gib < pool.volume_gib):
        listed = ", ".join(f"{volume.device} {'?' if volume.gib is None else f'{volume.gib:g}'}" for volume in volumes.volumes)
        counts = f"the price counts {pool.volume_gib:g} GiB of volumes"
        yield f"BlockDeviceMappings have {gib:g} GiB ({listed}), and {counts}: set volume_gib to {gib:g} in the fleet file"
