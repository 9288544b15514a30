"""The user data of Linux agents in a real Debian: packages are really installed, and the service is really enabled."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from support.template import TEMPLATE, resolved

RELEASE = "trixie"
MIRROR = "http://deb.debian.org/debian"
# What Debian's cloud images have of what the script needs.
IN_A_CLOUD_IMAGE = "systemd,curl,ca-certificates,procps"
KEPT = Path("/var/cache/jenkins-autoscaler-tests")


@pytest.fixture(scope="module")
def debian(tmp_path_factory):
    """A fresh Debian, from the archive itself once a machine: some 40 s, then 3."""
    assert os.geteuid() == 0, "only root may make a Debian: run the tests as root"
    assert shutil.which("debootstrap"), "needs Debian's package debootstrap"
    archive = KEPT / f"{RELEASE}.tar"
    root = tmp_path_factory.mktemp("debian") / "root"
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


def run(*command, check=True, timeout=300):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout)
    assert not check or done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done


def inside(root, command, **facts):
    """Run a command in it, with processes and mounts of its own, as a machine has."""
    mount = f'mount -t proc proc "{root}/proc" && exec chroot "{root}" /bin/sh -c "$1"'
    return run("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", mount, "sh", command, **facts)


def test_a_debian_gets_the_java_the_user_and_the_service_and_powers_off_when_nobody_answers(debian):
    script = debian / "user-data"
    data = TEMPLATE["Resources"]["LinuxAgents"]["Properties"]["LaunchTemplateData"]
    script.write_text(resolved(data["UserData"]["Fn::Base64"]), encoding="utf-8")
    script.chmod(0o755)
    # No systemd runs in there: the service is enabled, and cannot be started.
    said = inside(debian, "/user-data", check=False)
    assert 'version "21.' in inside(debian, "java -version").stderr, said.stdout[-2000:] + said.stderr[-2000:]
    assert "there is no Java" not in said.stderr
    assert (debian / "etc/systemd/system/multi-user.target.wants/autoscaler-agent.service").is_symlink()
    inside(debian, "systemd-analyze verify autoscaler-agent.service")
    inside(debian, "runuser -u jenkins -- test -w /home/jenkins")
    settings = "IMDS=http://127.0.0.1:9 BOOT_TIMEOUT_SECONDS=0 POWER_OFF='touch /off'"
    said = inside(debian, f"set -a; . /etc/autoscaler-agent.conf; {settings}; timeout 60 /usr/local/sbin/autoscaler-agent", check=False)
    assert (debian / "off").exists(), said.stdout + said.stderr
    assert "not registered within 0 s" in said.stdout
    again = inside(debian, "/user-data", check=False)
    assert "Setting up" not in again.stdout, "what is there is installed again"


def test_the_user_data_passes_shellcheck(tmp_path):
    script = tmp_path / "user-data"
    script.write_text(
        resolved(TEMPLATE["Resources"]["LinuxAgents"]["Properties"]["LaunchTemplateData"]["UserData"]["Fn::Base64"]), encoding="utf-8"
    )
    run("shellcheck", str(script))
