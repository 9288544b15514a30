"""The devices of this machine: those that the drivers show, or those that a file lists."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from . import kfd, nvidia
from .errors import NotPossibleError
from .records import Device

LISTED = Path("/etc/gpu-lease/devices.json")
_LISTS = {"nodes", "in_use_by"}


@dataclass(frozen=True)
class Places:
    """Where the drivers show what there is. ``listed``: the file that is believed instead, where there is one."""

    listed: Path = LISTED
    sys: Path = Path("/sys")
    dev: Path = Path("/dev")
    proc: Path = Path("/proc")
    nvidia_smi: str = "nvidia-smi"


def found(places: Places) -> list[Device]:
    """List the devices."""
    if places.listed.exists():
        return listed(places.listed)
    return [*kfd.devices(places.sys, places.dev), *nvidia.devices(places.dev, places.proc, places.nvidia_smi)]


def in_use(devices: Sequence[Device], places: Places) -> dict[str, str]:
    """Tell which of them are in use as the drivers show it, by id, and by what."""
    used = {device.id: f"process {device.in_use_by[0]}" for device in devices if device.in_use_by}
    used.update(kfd.in_use(places.sys, _known_to_kfd(devices, places)))
    used.update(nvidia.in_use([device for device in devices if device.vendor == "nvidia" and device.nodes], places.nvidia_smi))
    return used


def _known_to_kfd(devices: Sequence[Device], places: Places) -> list[Device]:
    """Find AMD's devices with the kernel's numbers; those of a file by their address."""
    numbers = {device.pci: device.kfd_id for device in kfd.devices(places.sys, places.dev)}
    known = [replace(device, kfd_id=device.kfd_id or numbers.get(device.pci, "")) for device in devices if device.vendor == "amd"]
    return [device for device in known if device.kfd_id]


def listed(path: Path) -> list[Device]:
    """Read a file of devices."""
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))["devices"]
        devices = [_device(entry) for entry in entries]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NotPossibleError(f"{path}: {error}") from error
    names = [device.id for device in devices]
    if len(set(names)) < len(names):
        raise NotPossibleError(f"{path}: two devices have the same id")
    return devices


def _device(entry: dict[str, Any]) -> Device:
    strange = set(entry) - {field.name for field in fields(Device)} | {"id"} - set(entry)
    if strange:
        raise ValueError(f"a device has an id, and may have a kind, a vendor, ...; not: {', '.join(sorted(strange))}")
    given = {name: tuple(value) if name in _LISTS else value for name, value in entry.items()}
    return Device(**{"visible": entry["id"], **given})
