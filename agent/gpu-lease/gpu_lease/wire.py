"""Messages between whoever asks and his supervisor: lines of JSON on a Unix socket, and who the kernel says is speaking."""

from __future__ import annotations

import json
import select
import socket
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOCKET = Path("/run/gpu-lease/socket")
_CREDENTIALS = struct.Struct("3i")
_LONGEST = 1 << 20
# Linux' number, which Python's socket module lacks.
SO_PASSCRED, SO_PEERCRED, SCM_CREDENTIALS = 16, 17, 2


class GoneError(ConnectionError):
    """Nobody is at the other end any more."""


@dataclass(frozen=True)
class Speaker:
    """A process at the other end."""

    pid: int
    uid: int


class Connection:
    """One end of a conversation."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self._read = b""
        self._speaker = Speaker(0, -1)

    def say(self, **message: object) -> None:
        """Send a message."""
        try:
            self.link.sendall(json.dumps(message).encode() + b"\n")
        except (BrokenPipeError, ConnectionResetError) as error:
            raise GoneError from error

    def hear(self) -> dict[str, Any]:
        """Wait for a message."""
        while b"\n" not in self._read:
            try:
                more, ancillary, _, _ = self.link.recvmsg(65536, socket.CMSG_SPACE(_CREDENTIALS.size))
            except ConnectionResetError as error:
                raise GoneError from error
            if not more or len(self._read) > _LONGEST:
                raise GoneError
            self._read += more
            for level, kind, data in ancillary:
                if (level, kind) == (socket.SOL_SOCKET, SCM_CREDENTIALS):
                    pid, uid, _ = _CREDENTIALS.unpack(data[: _CREDENTIALS.size])
                    self._speaker = Speaker(pid, uid)
        line, _, self._read = self._read.partition(b"\n")
        message = json.loads(line)
        if not isinstance(message, dict):
            raise ValueError("a message is an object")  # noqa: TRY004 - a wrong message, whatever is wrong with it
        return message

    def hear_from(self) -> tuple[dict[str, Any], Speaker]:
        """Wait for a message; tell which process sent it."""
        message = self.hear()
        return message, self._speaker

    def ask_who_speaks(self) -> None:
        """Let the kernel say of each message from now on which process sent it."""
        self.link.setsockopt(socket.SOL_SOCKET, SO_PASSCRED, 1)

    def peer(self) -> Speaker:
        """Tell which process connected."""
        pid, uid, _ = _CREDENTIALS.unpack(self.link.getsockopt(socket.SOL_SOCKET, SO_PEERCRED, _CREDENTIALS.size))
        return Speaker(pid, uid)

    def is_closed(self, seconds: float = 0.0) -> bool:
        """Whether the other end is gone, or goes within so long; without taking anything of what it said."""
        poll = select.poll()
        poll.register(self.link, select.POLLRDHUP)
        return bool(poll.poll(seconds * 1000))


def connected(path: Path) -> Connection:
    """Connect to the supervisors' socket."""
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    link.connect(str(path))
    return Connection(link)
