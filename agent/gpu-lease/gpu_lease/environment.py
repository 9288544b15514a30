"""What a command is told of its devices: the variables that the vendors' runtimes read, and ours."""

from __future__ import annotations

from collections.abc import Sequence

from .records import Device, Lease

# Each runtime takes its own, and HIP takes CUDA's as well, as numbers among what ROCR leaves: one that came from outside would hide
# the device that is held, or count in another list. The last two are read by the vendors' container runtimes.
_VISIBLE = (
    "ROCR_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "CUDA_VISIBLE_DEVICES",
    "AMD_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
)
_BY_VENDOR = {"amd": "ROCR_VISIBLE_DEVICES", "nvidia": "CUDA_VISIBLE_DEVICES"}


def changes(lease: Lease, devices: Sequence[Device], cgroup: str, cgroup_parent: str) -> dict[str, str | None]:
    """List the variables to set, and with None those to unset."""
    told: dict[str, str | None] = dict.fromkeys(_VISIBLE)
    for vendor, name in _BY_VENDOR.items():
        visible = [device.visible for device in devices if device.vendor == vendor]
        if visible:
            told[name] = ",".join(visible)
    told["GPU_LEASE"] = str(lease.number)
    told["GPU_LEASE_DEVICES"] = ",".join(device.id for device in devices)
    told["GPU_LEASE_NODES"] = " ".join(dict.fromkeys(node for device in devices for node in device.nodes))
    told["GPU_LEASE_PCI"] = " ".join(device.pci for device in devices if device.pci)
    told["GPU_LEASE_CGROUP"] = cgroup
    told["GPU_LEASE_CGROUP_PARENT"] = cgroup_parent or None
    return told
