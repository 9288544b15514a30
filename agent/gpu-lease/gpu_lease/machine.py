"""The machine, as the life of a lease needs it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager

from . import devices as found_devices
from . import processes
from .cgroups import Cgroups
from .records import Device, Lease, Process, Request, Ticket
from .state import State

_FRESH_SECONDS = 30


class RealMachine:
    """Files below /run, cgroups, and processes."""

    def __init__(self, state: State, cgroups: Cgroups, places: found_devices.Places) -> None:
        self._state, self.groups, self._places = state, cgroups, places
        self._devices: Sequence[Device] = ()
        self._looked = float("-inf")

    def alone(self) -> AbstractContextManager[None]:
        return self._state.alone()

    def alone_within(self, seconds: float) -> AbstractContextManager[bool]:
        return self._state.alone_within(seconds)

    def take_place(self, user: int, most: int) -> bool:
        return self._state.take_place(user, most)

    def now(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def runs(self, process: Process) -> bool:
        return processes.runs(process)

    def new_ticket(self, request: Request) -> Ticket:
        ticket = Ticket(self._state.new_number(*self.groups.numbers()), request, self.now())
        self._state.add_ticket(ticket)
        return ticket

    def tickets(self) -> list[Ticket]:
        return self._state.tickets()

    def is_alive(self, number: int) -> bool:
        return self._state.is_alive(number)

    def remove_ticket(self, number: int) -> None:
        self._state.remove_ticket(number)

    def leases(self) -> list[Lease]:
        return self._state.leases()

    def write_lease(self, lease: Lease) -> None:
        self._state.write_lease(lease)

    def remove_lease(self, number: int) -> None:
        self._state.remove_lease(number)

    def device_is_locked(self, device: str) -> bool:
        return self._state.device_is_locked(device)

    def lock_device(self, device: str) -> None:
        self._state.lock_device(device)

    def cgroups(self) -> Iterable[int]:
        return self.groups.numbers()

    def make_cgroup(self, number: int) -> None:
        self.groups.make(number)

    def move_into_cgroup(self, number: int, process: Process) -> bool:
        return processes.runs(process) and self.groups.move(number, process.pid) and processes.runs(process)

    def is_populated(self, number: int) -> bool:
        return self.groups.is_populated(number)

    def kill_cgroup(self, number: int) -> None:
        self.groups.kill(number)

    def remove_cgroup(self, number: int) -> bool:
        return self.groups.remove(number)

    def devices(self) -> Sequence[Device]:
        """List them as they were within the last half minute: one who waits asks all the time, and nvidia-smi takes a second."""
        if self.now() - self._looked > _FRESH_SECONDS:
            self._devices, self._looked = found_devices.found(self._places), self.now()
        return self._devices

    def in_use(self, devices: Sequence[Device]) -> dict[str, str]:
        return found_devices.in_use(devices, self._places)
