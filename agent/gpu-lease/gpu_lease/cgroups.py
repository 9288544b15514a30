"""A cgroup for each lease: what the command starts stays in it, whatever becomes of parents, sessions and descriptors.

Its folder is called as systemd calls a slice: Docker, whose containers are no children of the command, is told it as --cgroup-parent.
"""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from .errors import NotPossibleError

SLICE = "gpulease"
# Processes stand in a folder of their own: one that systemd gives limits to may hold none beside other folders.
_COMMAND = "command"
_TRIES = 200
_KILL = "cgroup.kill"


def mounted(mounts: Path = Path("/proc/self/mounts")) -> Path:
    """Find where version 2 of cgroups is mounted."""
    for line in mounts.read_text(encoding="utf-8").splitlines():
        _, place, kind, *_ = line.split()
        if kind == "cgroup2":
            return Path(place)
    raise NotPossibleError("this machine has no cgroups of version 2, and without them no device can be held")


class Cgroups:
    """The cgroups below one slice of our own."""

    def __init__(self, mount: Path, name: str = SLICE) -> None:
        self._name = name
        self._top = mount / f"{name}.slice"
        # Docker and podman know one hierarchy. Beside that of version 1, ours is not theirs.
        self.containers_can_join = mount == Path("/sys/fs/cgroup")
        try:
            self._top.mkdir(exist_ok=True)
            os.close(os.open(self._top / "cgroup.procs", os.O_WRONLY))
        except OSError as error:
            raise NotPossibleError(
                f"no cgroup can be made in {mount} ({error.strerror}): gpu-lease runs on the machine itself, not in a container"
            ) from error

    def parent_of(self, number: int) -> str:
        """Name a lease's cgroup as ``--cgroup-parent`` takes it where systemd manages cgroups."""
        return f"{self._name}-{number}.slice"

    def path_of(self, number: int) -> Path:
        return self._top / self.parent_of(number)

    def numbers(self) -> list[int]:
        """List the leases that have one."""
        names = [entry.name for entry in os.scandir(self._top) if entry.is_dir()]
        ours = [
            name[len(self._name) + 1 : -len(".slice")] for name in names if name.startswith(f"{self._name}-") and name.endswith(".slice")
        ]
        return [int(number) for number in ours if number.isdigit()]

    def make(self, number: int) -> None:
        (self.path_of(number) / _COMMAND).mkdir(parents=True, exist_ok=True)

    def move(self, number: int, pid: int) -> bool:
        """Move a process into it; False where there is no such process."""
        try:
            (self.path_of(number) / _COMMAND / "cgroup.procs").write_text(str(pid), encoding="ascii")
        except ProcessLookupError:
            return False
        return True

    def is_populated(self, number: int) -> bool:
        """Whether any process lives in it, or in what containers made below it."""
        try:
            events = (self.path_of(number) / "cgroup.events").read_text(encoding="ascii")
        except FileNotFoundError:
            return False
        return "populated 1" in events.splitlines()

    def kill(self, number: int) -> None:
        """Kill everything in it at once."""
        path = self.path_of(number)
        try:
            (path / _KILL).write_text("1", encoding="ascii")
        except (FileNotFoundError, PermissionError):  # gone, or a kernel before 5.14 (a file cannot be made there)
            if path.exists():
                _kill_one_by_one(path)

    def remove(self, number: int) -> bool:
        """Remove its folders; False where somebody is in one again."""
        return all(_removed(Path(folder)) for folder, _, _ in os.walk(self.path_of(number), topdown=False))


def member_of(pid: int) -> str:
    """Tell which cgroup of version 2 a process is in, as a path below the mount."""
    lines = Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8").splitlines()
    return next((line[len("0::") :] for line in lines if line.startswith("0::")), "")


def _removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno in {errno.EBUSY, errno.ENOTEMPTY}:
            return False
        raise
    return True


def _kill_one_by_one(path: Path) -> None:
    """Kill without cgroup.kill: what is frozen cannot start another process meanwhile."""
    for _ in range(_TRIES):
        _write(path / "cgroup.freeze", "1")
        pids = list(_pids(path))
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not pids:
            break
        time.sleep(0.01)
    _write(path / "cgroup.freeze", "0")


def _pids(path: Path) -> Iterator[int]:
    for folder, _, files in os.walk(path):
        if "cgroup.procs" in files:
            yield from (int(pid) for pid in (Path(folder) / "cgroup.procs").read_text(encoding="ascii").split())


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="ascii")
    except FileNotFoundError:
        return
