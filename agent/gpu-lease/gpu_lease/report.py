"""What is held, by whom and since when, and who waits: for people, and as JSON for programs."""

from __future__ import annotations

import pwd
from collections.abc import Sequence
from typing import Any

from . import life
from .ports import Machine
from .records import Device, Lease, Ticket

# Sixty who wait keep the lock for seconds.
_ALONE_SECONDS = 0.1


def status(machine: Machine) -> dict[str, Any]:
    """Look at everything once, and answer at once: if many are waiting, without being alone, and then without tidying."""
    devices = machine.devices()
    used = machine.in_use(devices)
    with machine.alone_within(_ALONE_SECONDS) as alone:
        if alone:
            life.tidy(machine)
        leases = machine.leases()
        waiting = life.waiting(machine)
        alive = {lease.number for lease in leases if machine.is_alive(lease.number)}
    now = machine.now()
    by_device = {device: lease for lease in leases for device in lease.devices}
    return {
        "devices": [_device(device, by_device.get(device.id), used, alive, now) for device in devices],
        "leases": len(leases),
        "waiting": [_asker(ticket, ticket.since, now) for ticket in waiting],
    }


def _device(device: Device, lease: Lease | None, used: dict[str, str], alive: set[int], now: float) -> dict[str, Any]:
    state = "held" if lease else "in use" if device.id in used else "free"
    facts = {"id": device.id, "kind": device.kind, "vendor": device.vendor, "model": device.model, "pci": device.pci, "nodes": device.nodes}
    if lease is None:
        return {**facts, "state": state, "held": None, "in_use_by": used.get(device.id)}
    held = _asker(lease.ticket, lease.since, now) | {
        "pid": lease.command.pid if lease.command else None,
        "supervised": lease.number in alive,
    }
    return {**facts, "state": state, "held": held, "in_use_by": None}


def _asker(ticket: Ticket, since: float, now: float) -> dict[str, Any]:
    return {
        "lease": ticket.number,
        "user": user(ticket.request.uid),
        "program": ticket.request.program,
        "count": ticket.request.count,
        "kind": ticket.request.kind,
        "since": round(since, 3),
        "seconds": round(max(0.0, now - since), 1),
    }


def user(uid: int) -> str:
    """Name a user."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def as_text(seen: dict[str, Any]) -> str:
    """Say it in lines: a device each, then whoever waits."""
    rows = [(device["id"], device["kind"] or device["vendor"] or "-", _state(device)) for device in seen["devices"]]
    lines = table(rows) if rows else ["no device"]
    for asker in seen["waiting"]:
        what = f"{asker['count']} {asker['kind'] or 'of any kind'}"
        lines.append(f"waiting: {asker['user']} ({asker['program']}) for {what}, for {duration(asker['seconds'])}")
    return "\n".join(lines)


def devices_as_text(devices: Sequence[Device]) -> str:
    """List devices in lines."""
    return "\n".join(table([(device.id, device.kind or "-", device.model or device.vendor or "-", device.pci) for device in devices]))


def _state(device: dict[str, Any]) -> str:
    held = device["held"]
    if held:
        alone = "" if held["supervised"] else "; its supervisor was killed, its command runs on"
        return f"held by {held['user']} ({held['program']}) for {duration(held['seconds'])}{alone}"
    return f"in use by {device['in_use_by']}, without a lease" if device["in_use_by"] else "free"


def table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Put columns below each other."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(word.ljust(width) for word, width in zip(row, widths)).rstrip() for row in rows]


def duration(seconds: float) -> str:
    """Say how long: 40 s, 12 min, 3 h 5 min."""
    minutes = int(seconds) // 60
    if minutes < 1:
        return f"{int(seconds)} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
