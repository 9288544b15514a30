"""A Debian that boots: systemd as the first process, in namespaces of its own, with cgroups of version 2 as on a server."""

import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from gpu_lease.cgroups import mounted

# The script's root becomes that of everything in there: a process that is only in a chroot may not do all that one on a server may.
_BOOT = """
mount --bind "$1" "$1"
cd "$1"
mkdir -p old
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
for place in run tmp dev; do mount -t tmpfs tmpfs $place; done
for device in null zero full random urandom tty; do touch dev/$device; mount --bind /dev/$device dev/$device; done
mkdir dev/pts dev/shm
pivot_root . old
umount -l old
mount --make-rshared /
exec env -i container=tests PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --log-target=null --show-status=no
"""
_UNIT = "[Service]\nType=oneshot\nTimeoutStartSec=infinity\nExecStart=/bin/bash /script\n"


def boots_and_runs(root: Path, script: str, seconds: float = 400) -> str:
    """Boot it, run a script as its root, and end it; return what the script said. ``seconds``: patience for a busy machine."""
    group = mounted() / f"booted{os.getpid()}x{time.monotonic_ns()}"
    group.mkdir()
    (root / "script").write_text(f"exec >/said 2>&1\n{script}\ntouch /done\n", encoding="utf-8")
    units = root / "etc/systemd/system"
    (units / "script.service").write_text(_UNIT, encoding="utf-8")
    (units / "multi-user.target.wants").mkdir(exist_ok=True)
    with suppress(FileExistsError):
        (units / "multi-user.target.wants/script.service").symlink_to("../script.service")
    (root / "done").unlink(missing_ok=True)
    apart = ["--mount", "--pid", "--fork", "--kill-child", "--cgroup", "--uts", "--ipc", "--net"]
    enter = f'echo $$ >{group}/cgroup.procs; exec unshare {" ".join(apart)} sh -ec "$0" sh "$1"'
    try:
        with subprocess.Popen(
            ["sh", "-ec", enter, _BOOT, str(root)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as machine:
            end = time.monotonic() + seconds
            while not (root / "done").exists() and machine.poll() is None and time.monotonic() < end:
                time.sleep(0.1)
            machine.kill()
            errors = machine.communicate()[0]
    finally:
        _removed(group)
    said = (root / "said").read_text(encoding="utf-8") if (root / "said").exists() else ""
    assert (root / "done").exists(), f"not done within {seconds} s\n{errors[-2000:]}\n{said[-4000:]}"
    return said


def _removed(group: Path) -> None:
    end = time.monotonic() + 20
    while group.exists() and time.monotonic() < end:
        with suppress(OSError):
            (group / "cgroup.kill").write_text("1", encoding="ascii")
            for folder, _, _ in os.walk(group, topdown=False):
                Path(folder).rmdir()
        time.sleep(0.05)
    assert not group.exists()
