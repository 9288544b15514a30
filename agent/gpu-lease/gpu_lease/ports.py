"""What the life of a lease needs of the machine, and of whoever asks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from .records import Device, Lease, Process, Request, Ticket


class Machine(Protocol):
    """Locks and files that only root may open, cgroups, and processes.

    Each method is one act: a supervisor may be killed before and after any of them. The kernel lets go of what a dead one held.
    """

    def alone(self) -> AbstractContextManager[None]:
        """Let one supervisor after the other look and change."""

    def alone_within(self, seconds: float) -> AbstractContextManager[bool]:
        """Do so if it is one's turn within so long; what is then only looked at may change meanwhile."""

    def now(self) -> float: ...
    def sleep(self, seconds: float) -> None: ...
    def runs(self, process: Process) -> bool: ...

    # Tickets and leases: files. A ticket is alive while its supervisor holds its lock.
    def new_ticket(self, request: Request) -> Ticket: ...
    def tickets(self) -> list[Ticket]: ...
    def is_alive(self, number: int) -> bool: ...
    def remove_ticket(self, number: int) -> None: ...
    def leases(self) -> list[Lease]: ...
    def write_lease(self, lease: Lease) -> None: ...
    def remove_lease(self, number: int) -> None: ...

    # A lock for each device, beside the files: whatever is done to those, the kernel grants none twice.
    def device_is_locked(self, device: str) -> bool: ...
    def lock_device(self, device: str) -> None: ...

    # A cgroup for each lease.
    def cgroups(self) -> Iterable[int]: ...
    def make_cgroup(self, number: int) -> None: ...
    def move_into_cgroup(self, number: int, process: Process) -> bool:
        """Put a process there; False where it has ended."""

    def is_populated(self, number: int) -> bool: ...
    def kill_cgroup(self, number: int) -> None: ...
    def remove_cgroup(self, number: int) -> bool:
        """Remove it, if it is empty; False where it is not."""

    def devices(self) -> Sequence[Device]: ...
    def in_use(self, devices: Sequence[Device]) -> dict[str, str]:
        """Tell which of them the vendor's driver shows in use, and by what. It may take a second."""


class Client(Protocol):
    """Whoever asks: the process that stays (the anchor), and the one that becomes the command."""

    anchor: Process

    def is_gone(self) -> bool: ...
    def pause(self, seconds: float) -> None:
        """Wait so long, or until he is gone: whoever is next is not kept by one who gave up."""

    def tell_waiting(self, ahead: int) -> None: ...
    def refuse(self, devices: Sequence[Device]) -> None:
        """Say that the machine has too few such devices."""

    def command(self, lease: Lease) -> Process | None:
        """Ask for the process that becomes the command; None where there is nobody any more."""

    def start(self, lease: Lease, devices: Sequence[Device]) -> None:
        """Let it become the command."""

    def wait(self, command: Process) -> None:
        """Return when the command or the anchor has ended."""
