"""The life of a lease: ask, wait in order, hold, end; and what others do when a supervisor was killed in between.

A device is held by a lease's record, from before its command can begin until its cgroup is empty and gone. So it does not matter where a
supervisor dies: with a record the device stays held, without one nothing was begun.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .order import can_ever, places
from .ports import Client, Machine
from .records import Device, Lease, Request, Ticket

LOOK_SECONDS = 0.5
# Between two looks at what the driver shows in use: soon at first, as it may show a process that has just ended.
BUSY_SECONDS = 5.0
KILL_SECONDS = 0.05
# So many of those who wait look as often; those behind them look more seldom, for all of them share one lock.
LOOK_OFTEN = 4


def supervise(machine: Machine, client: Client, request: Request) -> None:
    """Serve one who asks, from his ticket to the end of his command."""
    with machine.alone():
        tidy(machine)
        ticket = machine.new_ticket(request)
    lease = _waited_for(machine, client, ticket)
    if lease is None:
        _leave(machine, ticket.number)
        return
    command = client.command(lease)
    if command is not None and machine.move_into_cgroup(lease.number, command):
        lease = replace(lease, command=command)
        with machine.alone():
            machine.write_lease(lease)
        client.start(lease, [device for device in machine.devices() if device.id in lease.devices])
        client.wait(command)
    _end(machine, lease.number)


def tidy(machine: Machine) -> None:
    """Finish what dead supervisors left. Only for one who is alone."""
    leases = {lease.number: lease for lease in machine.leases()}
    for number in {*leases, *(ticket.number for ticket in machine.tickets()), *machine.cgroups()}:
        if machine.is_alive(number):
            continue
        lease = leases.get(number)
        if lease is not None and _goes_on(machine, lease):
            continue
        _finish(machine, number)


def waiting(machine: Machine) -> list[Ticket]:
    """List the living tickets without a lease. Only for one who is alone."""
    served = {lease.number for lease in machine.leases()}
    return [ticket for ticket in machine.tickets() if ticket.number not in served and machine.is_alive(ticket.number)]


def _goes_on(machine: Machine, lease: Lease) -> bool:
    """Whether a command whose supervisor was killed still runs: a build is not killed for that."""
    processes = (lease.command, lease.anchor)
    return all(process is not None and machine.runs(process) for process in processes) and machine.is_populated(lease.number)


def _finish(machine: Machine, number: int) -> bool:
    """Kill what is left of a lease; once that is gone, its devices are free. The record goes last but for the ticket."""
    machine.kill_cgroup(number)
    if machine.is_populated(number) or not machine.remove_cgroup(number):
        return False
    machine.remove_lease(number)
    machine.remove_ticket(number)
    return True


def _waited_for(machine: Machine, client: Client, ticket: Ticket) -> Lease | None:
    ahead, busy = -1, 0
    request = ticket.request
    while not client.is_gone():
        devices = machine.devices()
        if not can_ever(request.count, request.kind, devices):
            client.refuse(devices)
            break
        with machine.alone():
            tidy(machine)
            before = len([other for other in waiting(machine) if other.number < ticket.number])
            candidates = _free(machine, devices)
            mine = places(waiting(machine), candidates).get(ticket.number)
        pause = min(BUSY_SECONDS, LOOK_SECONDS * max(1.0, before / LOOK_OFTEN))
        if mine:
            used = machine.in_use(candidates)
            with machine.alone():
                lease = _granted(machine, client, ticket, [device for device in candidates if device.id not in used])
            if lease is not None:
                return lease
            busy += 1
            pause = min(BUSY_SECONDS, LOOK_SECONDS * 2**busy)
        if before != ahead:
            ahead = before
            client.tell_waiting(ahead)
        client.pause(pause)
    return None


def _free(machine: Machine, devices: Sequence[Device]) -> list[Device]:
    held = {device for lease in machine.leases() for device in lease.devices}
    return [device for device in devices if device.id not in held and not machine.device_is_locked(device.id)]


def _granted(machine: Machine, client: Client, ticket: Ticket, unused: Sequence[Device]) -> Lease | None:
    mine = places(waiting(machine), _free(machine, unused)).get(ticket.number)
    if not mine:
        return None
    for device in mine:
        machine.lock_device(device)
    machine.make_cgroup(ticket.number)
    lease = Lease(ticket, mine, machine.now(), client.anchor)
    machine.write_lease(lease)
    return lease


def _end(machine: Machine, number: int) -> None:
    while True:
        with machine.alone():
            if _finish(machine, number):
                return
        machine.sleep(KILL_SECONDS)


def _leave(machine: Machine, number: int) -> None:
    with machine.alone():
        machine.remove_ticket(number)
