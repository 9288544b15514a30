"""NVIDIA's devices, from the device files, the driver's description of each, and nvidia-smi."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from .records import Device

_SECONDS = 20
NO_ANSWER = "nvidia-smi does not answer"


def devices(dev: Path, proc: Path, smi: str) -> list[Device]:
    """List the devices with a file that the driver describes."""
    described = {}
    for information in sorted((proc / "driver/nvidia/gpus").glob("*/information")):
        facts = _facts(information)
        if facts.get("GPU Excluded", "No") == "No":
            described[facts.get("Device Minor", "")] = facts
    asked = _asked(smi) if described else {}  # which also makes the device files, after a boot in which nobody has used a card yet
    minors = sorted(int(path.name[len("nvidia") :]) for path in dev.glob("nvidia[0-9]*") if path.name[len("nvidia") :].isdigit())
    return [_device(dev / f"nvidia{minor}", described[str(minor)], asked) for minor in minors if str(minor) in described]


def in_use(devices: list[Device], smi: str) -> dict[str, str]:
    """Tell which devices have a compute process, by id. Where the program is there and fails, nothing is known: all count as in use."""
    if not devices:
        return {}
    try:
        said = _run(smi, "--query-compute-apps=gpu_uuid,pid")
    except FileNotFoundError:
        return {}
    except (OSError, subprocess.SubprocessError):
        return {device.id: NO_ANSWER for device in devices}
    lines = [line.split(", ") for line in said.splitlines() if line.startswith("GPU-")]
    by_uuid = {words[0]: f"process {words[-1].strip()}" for words in lines}
    return {device.id: by_uuid[device.visible] for device in devices if device.visible in by_uuid}


def _device(node: Path, facts: dict[str, str], asked: dict[str, tuple[str, str]]) -> Device:
    pci = facts.get("Bus Location", "").lower()
    uuid, capability = asked.get(pci, (facts.get("GPU UUID", ""), ""))
    if "?" in uuid:  # the driver has not woken the card yet
        uuid = ""
    kind = "sm_" + capability.replace(".", "") if re.fullmatch(r"\d+\.\d", capability) else ""
    # Without a name of its own a card is known by its number, which is what CUDA takes, too.
    name = uuid or f"nvidia-{pci}"
    return Device(name, kind, "nvidia", facts.get("Model", ""), uuid or node.name[len("nvidia") :], pci, (str(node),))


def _asked(smi: str) -> dict[str, tuple[str, str]]:
    """Ask the program for UUID and compute capability, by PCI address."""
    try:
        said = _run(smi, "--query-gpu=pci.bus_id,uuid,compute_cap")
    except (OSError, subprocess.SubprocessError):
        return {}
    rows = [[word.strip() for word in line.split(",")] for line in said.splitlines()]
    # The program writes the domain with eight digits, the driver with four.
    return {row[0].lower()[-len("0000:00:00.0") :]: (row[1], row[2]) for row in rows if len(row) == 3}


def _run(smi: str, query: str) -> str:
    command = [smi, query, "--format=csv,noheader"]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS, check=True).stdout


def _facts(information: Path) -> dict[str, str]:
    pairs = (line.partition(":") for line in information.read_text(encoding="utf-8", errors="replace").splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}
