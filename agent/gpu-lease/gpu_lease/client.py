"""The part of whoever asks: wait for devices, become the command, and stay beside it to pass on signals and its end.

The process that asks stays where it was started, in its cgroup and session (the anchor); its child is moved and becomes the command, with
the asker's user, groups, folder, limits and terminal, for nobody else ever starts it.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import anchor
from .errors import NotPossibleError
from .wire import Connection, GoneError, connected

_BEGUN = b"\0"
_AGAIN = 3  # times that one asks anew whose supervisor was killed before the command began


def run(
    socket_path: Path, command: Sequence[str], request: Mapping[str, object], patience: float | None = None, *, quiet: bool = False
) -> int:
    """Run a command with devices; return how it ended."""
    deadline = None if patience is None else time.monotonic() + patience
    for _ in range(_AGAIN):
        connection = _asked(socket_path, {**request, "do": "run", "program": Path(command[0]).name})
        try:
            return _served(connection, command, deadline, socket_path, quiet=quiet)
        except GoneError:
            say("its supervisor was killed before the command began; asking again")
            connection.link.close()
    raise NotPossibleError(f"its supervisor was killed {_AGAIN} times", 75)


def status(socket_path: Path) -> dict[str, Any]:
    """Ask what is held, and who waits."""
    try:
        answer = _asked(socket_path, {"do": "status"}).hear()
    except GoneError as error:
        raise NotPossibleError("its supervisor was killed", 75) from error
    _raise_error(answer)
    seen: dict[str, Any] = answer["status"]
    return seen


def say(text: str) -> None:
    """Tell the person, not the command's output."""
    sys.stderr.write(f"gpu-lease: {text}\n")
    sys.stderr.flush()


def _asked(path: Path, message: Mapping[str, object]) -> Connection:
    try:
        connection = connected(path)
        _raise_error(connection.hear())  # from now on the kernel tells the other end who speaks
        connection.say(**message)
    except (FileNotFoundError, ConnectionRefusedError) as error:
        raise NotPossibleError(f"nothing hands out devices on this machine ({path}: {error.strerror})") from error
    except GoneError as error:
        raise NotPossibleError(f"no supervisor answers at {path}", 75) from error
    return connection


def _served(connection: Connection, command: Sequence[str], deadline: float | None, path: Path, *, quiet: bool) -> int:
    asked, first = time.monotonic(), True
    while True:
        # Its supervisor always looks once: who has no patience at all gets what is free.
        message = _heard(connection, None if first else deadline)
        first = False
        _raise_error(message)
        if "within" in message:
            connection.link.close()
            return _become(command, message["within"])
        if "lease" in message:
            break
        if not quiet and message.get("waiting") is not None:
            say(f"waits for a free device, {message['waiting']} ahead")
    connection.link.settimeout(None)
    lease = message["lease"]
    if not quiet:
        say(f"holds {', '.join(message['devices'])} (lease {lease}), after {time.monotonic() - asked:.0f} s")
    child = _begin(connection, command)
    return anchor.stay(child, connection, lambda: _is_over(path, lease))


def _heard(connection: Connection, deadline: float | None) -> dict[str, Any]:
    if deadline is not None:
        connection.link.settimeout(max(deadline - time.monotonic(), 0.01))
    try:
        return connection.hear()
    except socket.timeout as error:
        raise NotPossibleError("no device was free in time", 75) from error


def _begin(connection: Connection, command: Sequence[str]) -> int:
    """Start the child that becomes the command; return when it has become that, or raise what kept it."""
    read_end, write_end = os.pipe()
    # From here on a signal is for the command: it is kept until there is one.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, anchor.WAITED_FOR)
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.close(read_end)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            code = _child(connection, command, write_end)
        finally:
            os._exit(code)  # whatever it was: there must not be a second one of the caller
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        told = pipe.read()
    if told == _BEGUN:
        return child
    os.waitpid(child, 0)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if not told:
        raise GoneError
    number, _, reason = told[len(_BEGUN) :].decode(errors="replace").partition(" ")
    raise NotPossibleError(reason, int(number))


def _child(connection: Connection, command: Sequence[str], pipe: int) -> int:
    """Wait to be moved, then become the command. Nothing of it returns to the caller."""
    try:
        connection.say(here=True)
        message = connection.hear()
        if "granted" not in message:
            return 75
        os.write(pipe, _BEGUN)
        _become(command, message["granted"])
    except GoneError:
        return 75
    except NotPossibleError as error:
        os.write(pipe, f"{error.code} {error}".encode(errors="replace"))
    return 127


def _become(command: Sequence[str], changes: Mapping[str, str | None]) -> int:
    environment = initial_environment()
    for name, value in changes.items():
        environment.pop(os.fsencode(name), None)
        if value is not None:
            environment[os.fsencode(name)] = os.fsencode(value)
    # Python ignores these, and what is ignored would stay so in the command.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    path = os.fsdecode(environment.get(b"PATH", os.fsencode(os.defpath)))
    program = command[0] if "/" in command[0] else shutil.which(command[0], path=path)
    if program is None:
        raise NotPossibleError(f"{command[0]}: not found", 127)
    try:
        os.execve(program, list(command), environment)
    except OSError as error:
        raise NotPossibleError(f"{command[0]}: {error.strerror}", 127 if isinstance(error, FileNotFoundError) else 126) from error


def initial_environment() -> dict[bytes, bytes]:
    """Read what this program was given: Python adds LC_CTYPE to its own where it finds no locale."""
    given = Path("/proc/self/environ").read_bytes().split(b"\0")
    return dict(entry.partition(b"=")[::2] for entry in given if b"=" in entry)


def _is_over(path: Path, lease: int) -> bool:
    """Ask about a lease; whoever answers finishes what its dead supervisor left."""
    try:
        held = [device["held"] for device in status(path)["devices"]]
    except NotPossibleError:
        return True
    return lease not in [one["lease"] for one in held if one]


def _raise_error(message: Mapping[str, object]) -> None:
    if "error" in message:
        raise NotPossibleError(str(message["error"]), int(str(message.get("code", 69))))
