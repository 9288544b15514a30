"""What is written down: a device, what somebody asks for, his ticket, and his lease.

A newer version reads what an older one wrote while its commands run on: a new field of a ticket or a lease needs a default.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Device:
    """One graphics card.

    ``visible``: what the vendor's runtime calls it in its list of visible devices; ``place``: its number among all of AMD's.
    """

    id: str
    kind: str = ""
    vendor: str = ""
    model: str = ""
    visible: str = ""
    pci: str = ""
    nodes: tuple[str, ...] = ()
    in_use_by: tuple[int, ...] = ()  # only in a file of devices, for trying things out
    kfd_id: str = field(default="", repr=False)
    place: str = field(default="", repr=False)

    def is_a(self, kind: str) -> bool:
        """Whether it is what somebody asks for: its architecture, its vendor or its model, in any case; no word means any device."""
        return not kind or kind.lower() in {self.kind.lower(), self.vendor.lower(), self.model.lower()}


@dataclass(frozen=True)
class Process:
    """A process that no later one can be taken for: its number, and when it started."""

    pid: int
    started: int


@dataclass(frozen=True)
class Request:
    """What somebody asks for, and who he is. ``program`` is the command's first word: the others may hold secrets."""

    count: int = 1
    kind: str = ""
    uid: int = 0
    program: str = ""


@dataclass(frozen=True)
class Ticket:
    """A place in the queue."""

    number: int
    request: Request
    since: float = 0.0


@dataclass(frozen=True)
class Lease:
    """The devices that one command holds.

    ``command`` is None until it is in its cgroup; it does not begin before. ``anchor`` is the process that asked, and stays where it
    was started: when it ends, so does the command.
    """

    ticket: Ticket
    devices: tuple[str, ...]
    since: float = 0.0
    anchor: Process | None = None
    command: Process | None = None

    @property
    def number(self) -> int:
        return self.ticket.number


def to_json(record: Ticket | Lease) -> dict[str, Any]:
    """Write a record down."""
    return asdict(record)


def ticket_of(data: dict[str, Any]) -> Ticket:
    """Read a ticket."""
    return Ticket(data["number"], Request(**data["request"]), data["since"])


def lease_of(data: dict[str, Any]) -> Lease:
    """Read a lease."""
    anchor, command = (Process(**data[name]) if data[name] else None for name in ("anchor", "command"))
    return Lease(ticket_of(data["ticket"]), tuple(data["devices"]), data["since"], anchor, command)
