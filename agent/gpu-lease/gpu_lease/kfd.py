"""AMD's devices, from the kernel's description of compute nodes and of the processes that use them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from .records import Device

# Numbers as the kernel writes them: amdkfd/kfd_topology.c, kfd_process.c.
_TOPOLOGY = "class/kfd/kfd/topology/nodes"
_PROCESSES = "class/kfd/kfd/proc"


def devices(sys: Path, dev: Path) -> list[Device]:
    """List the compute nodes with a GPU whose render node is there, in the order in which the runtime numbers them."""
    found = []
    index = 0
    for node in sorted((sys / _TOPOLOGY).glob("[0-9]*"), key=lambda path: int(path.name)):
        facts = _facts(node / "properties")
        if not facts.get("simd_count"):  # a processor, or a node that may not be read
            continue
        render = dev / "dri" / f"renderD{facts.get('drm_render_minor', 0)}"
        if render.exists():
            found.append(_device(node, facts, index, (str(dev / "kfd"), str(render))))
        index += 1
    names = [device.id for device in found]
    return [device if names.count(device.id) == 1 else _by_its_render_node(device) for device in found]


def in_use(sys: Path, devices: list[Device]) -> dict[str, str]:
    """Tell which devices have a queue or memory of a process, by id."""
    used = {}
    for process in sorted((sys / _PROCESSES).glob("[0-9]*")):
        theirs = {_read(queue) for queue in process.glob("queues/*/gpuid")}
        theirs |= {path.name[len("vram_") :] for path in process.glob("vram_*") if _read(path) not in {"", "0"}}
        used.update({device.id: f"process {process.name}" for device in devices if device.kfd_id in theirs})
    return used


def architecture(version: int) -> str:
    """Name an architecture as the compiler does: 100300 is gfx1030, 90010 is gfx90a."""
    major, minor, step = version // 10000, version // 100 % 100, version % 100
    return f"gfx{major}{minor:x}{step:x}"


def _device(node: Path, facts: dict[str, int], index: int, nodes: tuple[str, ...]) -> Device:
    location = facts.get("location_id", 0)
    pci = f"{facts.get('domain', 0):04x}:{location >> 8 & 0xFF:02x}:{location >> 3 & 0x1F:02x}.{location & 7}"
    # Cards before Vega 20 have no number of their own: the runtime knows them by their place alone.
    unique = facts.get("unique_id", 0)
    name = f"GPU-{unique:016x}" if unique else ""
    return Device(
        id=name or f"amd-{pci}",
        kind=architecture(facts.get("gfx_target_version", 0)),
        vendor="amd",
        model=_read(node / "name"),
        visible=name or str(index),
        place=str(index),
        pci=pci,
        nodes=nodes,
        kfd_id=_read(node / "gpu_id"),
    )


def _by_its_render_node(device: Device) -> Device:
    """Tell partitions of one card apart, which share its number: the runtime knows each by its place alone."""
    return replace(device, id=f"{device.id}-{Path(device.nodes[-1]).name}", visible=device.place)


def _facts(properties: Path) -> dict[str, int]:
    lines = (line.split() for line in _read(properties).splitlines())
    return {words[0]: int(words[1]) for words in lines if len(words) == 2 and words[1].isdigit()}


def _read(path: Path) -> str:
    """Read what may be gone by now, or closed to a container."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
