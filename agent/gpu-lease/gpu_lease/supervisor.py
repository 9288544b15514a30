"""The part of root: one process for each who asks. It starts nothing on anybody's behalf: it locks, moves a process, waits, and kills.

Of what it is told it believes a number, a kind and a name to show; who speaks it hears from the kernel.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import environment, life, processes, report
from .cgroups import member_of
from .errors import NotPossibleError
from .machine import RealMachine
from .records import Device, Lease, Process, Request
from .wire import Connection, GoneError, Speaker

_ASK_SECONDS = 30
_MOST_DEVICES = 1024
_LONGEST_WORD = 200
# The socket has 1,024 connections. No user gets more than these, so that others can ask; root's are not counted.
CONNECTIONS_OF_A_USER = 128


class RealClient:
    """Whoever asks, at the other end of a connection."""

    def __init__(self, connection: Connection, anchor: Process, peer: Speaker, machine: RealMachine) -> None:
        self._connection, self.anchor, self._peer, self._machine = connection, anchor, peer, machine

    def is_gone(self) -> bool:
        return self._connection.is_closed()

    def pause(self, seconds: float) -> None:
        self._connection.is_closed(seconds)

    def tell_waiting(self, ahead: int) -> None:
        self._say(waiting=ahead)

    def refuse(self, devices: Sequence[Device]) -> None:
        kinds = ", ".join(sorted({device.kind or device.vendor or device.id for device in devices}))
        have = f"has {len(devices)} ({kinds})" if devices else "has none"
        self._say(error=f"the machine {have}: so many of that kind can never be free", code=69)

    def command(self, lease: Lease) -> Process | None:
        self._say(lease=lease.number, devices=lease.devices)
        try:
            _, speaker = self._connection.hear_from()
            # The kernel names the process; a user may only hand over one of his own.
            if speaker.pid <= 0 or processes.owner(speaker.pid) != self._peer.uid != 0:
                return None
            return processes.process(speaker.pid)
        except (GoneError, OSError, ValueError):
            return None

    def start(self, lease: Lease, devices: Sequence[Device]) -> None:
        groups = self._machine.groups
        parent = groups.parent_of(lease.number) if groups.containers_can_join else ""
        self._say(granted=environment.changes(lease, devices, str(groups.path_of(lease.number)), parent))

    def wait(self, command: Process) -> None:
        processes.wait_for_end(command, self._connection.link)

    def _say(self, **message: object) -> None:
        try:
            self._connection.say(**message)
        except (GoneError, OSError):
            return  # that nobody hears it, the next look at the connection tells


def serve_one(link: socket.socket, machine: RealMachine) -> None:
    """Do what one connection asks for."""
    connection = Connection(link)
    link.settimeout(_ASK_SECONDS)
    connection.ask_who_speaks()
    uid = connection.peer().uid
    if uid != 0 and not machine.take_place(uid, CONNECTIONS_OF_A_USER):
        problem = f"{report.user(uid)} has {CONNECTIONS_OF_A_USER} connections open, which is a user's share: try again later"
        connection.say(hello="gpu-lease", error=problem, code=75)
        return
    connection.say(hello="gpu-lease")
    try:
        message = connection.hear()
        if message.get("do") == "status":
            connection.say(status=report.status(machine))
        else:
            _run(connection, message, machine)
    except GoneError:
        return
    except NotPossibleError as error:
        connection.say(error=str(error), code=error.code)
    except (ValueError, RecursionError) as error:
        connection.say(error=f"not understood: {error}", code=64)


def _run(connection: Connection, message: dict[str, Any], machine: RealMachine) -> None:
    peer = connection.peer()
    request = _request(message, peer)
    anchor = processes.process(peer.pid) if peer.pid > 0 else None
    if anchor is None or not processes.shares_our_processes(peer.pid):
        raise NotPossibleError("asked from inside a container: run gpu-lease outside, and the container as its command")
    if processes.owner(peer.pid) != peer.uid:
        raise GoneError
    enclosing = _enclosing(machine, peer.pid)
    if enclosing is not None:
        _within(connection, machine, enclosing, request)
        return
    life.supervise(machine, RealClient(connection, anchor, peer, machine), request)
    connection.say(over=True)


def _request(message: dict[str, Any], peer: Speaker) -> Request:
    count, kind, program = message.get("count", 1), message.get("kind", ""), message.get("program", "")
    if not isinstance(count, int) or not 1 <= count <= _MOST_DEVICES:
        raise ValueError(f"count ({count!r}) is no number of devices")
    if not isinstance(kind, str) or not isinstance(program, str):
        raise ValueError("kind and program are words")  # noqa: TRY004 - a wrong message, whatever is wrong with it
    words = ("".join(letter for letter in word if letter.isprintable())[:_LONGEST_WORD] for word in (kind, program))
    return Request(count, next(words), peer.uid, next(words))


def _enclosing(machine: RealMachine, pid: int) -> Lease | None:
    """Find the lease that a process runs in already."""
    parts = member_of(pid).split("/")
    with machine.alone():
        return next((lease for lease in machine.leases() if machine.groups.parent_of(lease.number) in parts), None)


def _within(connection: Connection, machine: RealMachine, lease: Lease, request: Request) -> None:
    """Let a command in a lease use what that holds. It must not wait: it would hold one device while it waits for another."""
    held = [device for device in machine.devices() if device.id in lease.devices]
    fitting = [device for device in held if device.is_a(request.kind)][: request.count]
    if len(fitting) < request.count:
        names = ", ".join(device.id for device in held)
        raise NotPossibleError(f"runs within lease {lease.number}, which holds {names}; ask that one for all that is needed", 69)
    parent = machine.groups.parent_of(lease.number) if machine.groups.containers_can_join else ""
    connection.say(within=environment.changes(lease, fitting, str(machine.groups.path_of(lease.number)), parent))


def listen(path: Path) -> socket.socket:
    """Open the socket that everybody on the machine may ask at."""
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    early = path.with_name(f"{path.name}.{os.getpid()}")  # who finds it under its own name is heard
    listener.bind(str(early))
    early.chmod(0o666)
    listener.listen(128)
    early.rename(path)
    return listener


def serve(path: Path, machine: RealMachine) -> None:
    """Start a supervisor for each who asks, where no systemd does it. It holds nothing itself."""
    listener = listen(path)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        link, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os._exit(served(link, machine))
        link.close()


def served(link: socket.socket, machine: RealMachine) -> int:
    """Serve one, and end: the process must not go back into the loop of the one that listens."""
    try:
        serve_one(link, machine)
    except (GoneError, OSError) as error:
        sys.stderr.write(f"gpu-lease: {error!r}\n")
        return 1
    return 0
