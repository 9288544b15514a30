"""Tickets, leases and locks as files that only root may open: the kernel drops a lock with the process that held it."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from .records import Lease, Ticket, lease_of, ticket_of, to_json

_LOCK_SECONDS = 0.005  # between two tries to take a lock


class State:
    """One folder below /run: a reboot empties it, and ends everything that it speaks of."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: list[int] = []  # descriptors of locks that are kept until this process ends
        for name in ("tickets", "leases", "devices", "users"):
            (folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the one lock of all."""
        descriptor = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def alone_within(self, seconds: float) -> Iterator[bool]:
        """Hold the one lock of all, if it is free within so long; tell whether it is held."""
        descriptor = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            yield _lock_within(descriptor, seconds)
        finally:
            os.close(descriptor)

    def take_place(self, user: int, most: int) -> bool:
        """Take one of a user's places until this process ends; False if all are taken."""
        folder = self._folder / "users" / str(user)
        folder.mkdir(mode=0o700, exist_ok=True)
        for number in range(most):
            descriptor = os.open(folder / str(number), os.O_RDWR | os.O_CREAT, 0o600)
            if _lock_within(descriptor, 0.0):
                self._held.append(descriptor)
                return True
            os.close(descriptor)
        return False

    def new_number(self, *used: int) -> int:
        """Count on: no number comes twice between two boots, for cgroups are named by it."""
        counter = self._folder / "counter"
        last = int(counter.read_text(encoding="ascii")) if counter.exists() else 0
        number = max([last, *used, *self._numbers("tickets"), *self._numbers("leases")]) + 1
        self._write(counter, str(number))
        return number

    def add_ticket(self, ticket: Ticket) -> None:
        """Put a ticket in the queue, locked from its first moment on."""
        self._held.append(self._write(self._ticket(ticket.number), json.dumps(to_json(ticket)), locked=True))

    def tickets(self) -> list[Ticket]:
        return [ticket_of(json.loads(text)) for text in self._texts("tickets")]

    def is_alive(self, number: int) -> bool:
        """Whether a supervisor holds the ticket."""
        return _is_locked(self._ticket(number))

    def remove_ticket(self, number: int) -> None:
        self._ticket(number).unlink(missing_ok=True)

    def leases(self) -> list[Lease]:
        return [lease_of(json.loads(text)) for text in self._texts("leases")]

    def write_lease(self, lease: Lease) -> None:
        self._write(self._lease(lease.number), json.dumps(to_json(lease)))

    def remove_lease(self, number: int) -> None:
        self._lease(number).unlink(missing_ok=True)

    def device_is_locked(self, device: str) -> bool:
        return _is_locked(self._device(device))

    def lock_device(self, device: str) -> None:
        """Keep a device's lock until this process ends. It is free: whoever calls is alone, and has looked."""
        descriptor = os.open(self._device(device), os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._held.append(descriptor)

    def _ticket(self, number: int) -> Path:
        return self._folder / "tickets" / str(number)

    def _lease(self, number: int) -> Path:
        return self._folder / "leases" / str(number)

    def _device(self, device: str) -> Path:
        return self._folder / "devices" / quote(device, safe="")

    def _numbers(self, name: str) -> list[int]:
        names = [entry.name for entry in (self._folder / name).iterdir()]
        return sorted(int(entry) for entry in names if entry.isdigit())

    def _texts(self, name: str) -> Iterator[bytes]:
        """Read each file of a folder. One that is removed meanwhile is left out: who only looks need not be alone."""
        for number in self._numbers(name):
            with suppress(FileNotFoundError):
                yield (self._folder / name / str(number)).read_bytes()

    def _write(self, path: Path, text: str, *, locked: bool = False) -> int:
        """Write a file that is there whole or not at all; keep it open where its lock is wanted."""
        part = path.with_name(f"{path.name}.{os.getpid()}")
        descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        if locked:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.write(descriptor, text.encode())
        if not locked:
            os.close(descriptor)
        part.rename(path)
        return descriptor


def _lock_within(descriptor: int, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while not _lock(descriptor):
        if time.monotonic() >= until:
            return False
        time.sleep(_LOCK_SECONDS)
    return True


def _lock(descriptor: int) -> bool:
    """Lock a file, unless it is locked."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_locked(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        return not _lock(descriptor)
    finally:
        os.close(descriptor)
