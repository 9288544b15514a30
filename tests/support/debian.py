"""A Debian to install into: made from the archive, thrown away after the tests."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

RELEASE = "trixie"
MIRROR = "http://deb.debian.org/debian"
# What Debian's cloud images have of what the agent needs.
IN_A_CLOUD_IMAGE = "systemd,curl,ca-certificates,procps,python3"
KEPT = Path("/var/cache/jenkins-autoscaler-tests")


def fresh_debian(root: Path) -> Iterator[Path]:
    """Make a Debian, from the archive itself once a machine: some 40 s, then 3."""
    archive = KEPT / f"{RELEASE}-{sha256(IN_A_CLOUD_IMAGE.encode()).hexdigest()[:8]}.tar"
    if not archive.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        run("debootstrap", "--variant=minbase", f"--include={IN_A_CLOUD_IMAGE}", RELEASE, str(root), MIRROR)
        part = archive.with_suffix(f".{os.getpid()}")
        run("tar", "-C", str(root), "-cf", str(part), ".")
        part.rename(archive)
    else:
        root.mkdir()
        run("tar", "-C", str(root), "-xf", str(archive))
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    yield root
    shutil.rmtree(root)


def run(*command: str, check: bool = True, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout)
    assert not check or done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done


def into(root: Path, *command: str, network: bool = True) -> list[str]:
    """The words that run a command in it, with processes and mounts of its own, as a machine has."""
    mount = f'mount -t proc proc "{root}/proc" && exec chroot "{root}" "$@"'
    alone = [] if network else ["--net"]
    return ["unshare", "--mount", "--pid", "--fork", "--kill-child", *alone, "sh", "-c", mount, "sh", *command]


def inside(root: Path, command: str, **facts) -> subprocess.CompletedProcess[str]:
    """Run a shell's command in it."""
    return run(*into(root, "/bin/sh", "-c", command), **facts)
