"""Volumes of a pool's agents: what its launch template and its image make, against what the fleet file counts."""

from collections.abc import Iterator, Mapping
from typing import Any

from autoscaler.domain.facts.fleet import Pool


def volume_findings(pool: Pool, data: Mapping[str, Any], image: Mapping[str, Any] | None) -> Iterator[str]:
    """Say where the volumes are not as large as the fleet file counts them. A size that neither tells is of a snapshot that nobody read."""
    sizes = _sizes(data, image or {})
    told = sum(size for size in sizes.values() if size is not None)
    is_whole = bool(sizes) and None not in sizes.values()
    if pool.volume_gib is not None and (told > pool.volume_gib or (is_whole and told < pool.volume_gib)):
        listed = ", ".join(f"{device} {'?' if size is None else f'{size:g}'}" for device, size in sorted(sizes.items()))
        counts = f"the price counts {pool.volume_gib:g} GiB of volumes"
        yield f"BlockDeviceMappings have {told:g} GiB ({listed}), and {counts}: set volume_gib to {told:g} in the fleet file"


def _sizes(data: Mapping[str, Any], image: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the size of each volume by its device, as EC2 makes it: the template's word goes before the image's."""
    sizes: dict[str, float | None] = {}
    for mapping in (*image.get("BlockDeviceMappings", ()), *data.get("BlockDeviceMappings", ())):
        device = str(mapping.get("DeviceName", ""))
        if "NoDevice" in mapping:
            sizes.pop(device, None)
        elif "Ebs" in mapping:
            size = mapping["Ebs"].get("VolumeSize")
            sizes[device] = sizes.get(device) if size is None else float(size)
    return sizes
