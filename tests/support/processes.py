"""Processes of this machine, read from /proc: not every machine has pgrep and pkill."""

import os
import pwd
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def naming(text: str) -> list[int]:
    """List the processes whose command line holds a text, this one excepted."""
    return [pid for pid in _all() if pid != os.getpid() and text in _command_line(pid)]


def of_user(name: str) -> list[int]:
    """List a user's processes that have not ended: nobody may be there to take note of their end."""
    uid = pwd.getpwnam(name).pw_uid
    return [pid for pid in _all() if _owner(pid) == uid and not _has_ended(pid)]


def kill(pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _all() -> Iterator[int]:
    return (int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit())


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _owner(pid: int) -> int | None:
    try:
        return Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        return None


def _has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
