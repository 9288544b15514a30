"""Processes by number and start, so that none is taken for a later one of the same number."""

from __future__ import annotations

import os
import select
import socket
from pathlib import Path

from .records import Process


def started(pid: int) -> int:
    """Read when a process started, in ticks since the boot: a number the kernel gives no later one of that pid."""
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    return int(stat.rpartition(")")[2].split()[19])


def process(pid: int) -> Process | None:
    """Describe a running process."""
    try:
        return Process(pid, started(pid))
    except (FileNotFoundError, ProcessLookupError):
        return None


def runs(wanted: Process) -> bool:
    """Whether that very process still runs; one that has ended and is waited for does not."""
    try:
        stat = Path(f"/proc/{wanted.pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    fields = stat.rpartition(")")[2].split()
    return int(fields[19]) == wanted.started and fields[0] not in {"Z", "X"}


def owner(pid: int) -> int:
    """Tell as whom a process acts."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines()
    return int(next(line for line in lines if line.startswith("Uid:")).split()[2])


def shares_our_processes(pid: int) -> bool:
    """Whether it sees the same processes as we do: one in a container does not."""
    return Path(f"/proc/{pid}/ns/pid").stat().st_ino == Path("/proc/self/ns/pid").stat().st_ino


def wait_for_end(wanted: Process, connection: socket.socket) -> None:
    """Return when the process has ended, or nobody is at the other end of the connection."""
    try:
        descriptor = os.pidfd_open(wanted.pid)
    except ProcessLookupError:
        return
    try:
        if not runs(wanted):
            return
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.register(connection, select.POLLRDHUP)
        poll.poll()
    finally:
        os.close(descriptor)
