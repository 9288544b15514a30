"""Cgroups of leases as the kernel of this machine has them, where it is hard to bring the whole program to that point."""

import os
import signal
import subprocess
import time

import pytest

from gpu_lease import cgroups, life
from gpu_lease.cgroups import Cgroups, mounted
from gpu_lease.devices import Places
from gpu_lease.machine import RealMachine
from gpu_lease.state import State

pytestmark = pytest.mark.needs("root", "cgroups")


@pytest.fixture
def groups():
    name = f"gpulease{os.getpid()}"
    yield Cgroups(mounted(), name)
    top = mounted() / f"{name}.slice"
    (top / "cgroup.kill").write_text("1", encoding="ascii")
    for folder in sorted((path for path in top.rglob("*") if path.is_dir()), reverse=True):
        until(lambda folder=folder: cgroups._removed(folder))
    top.rmdir()


def until(is_so):
    end = time.monotonic() + 10
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


# It starts others while somebody looks at the list of those to kill.
FORKS = """
import os, time
input()
for _ in range(100):
    if os.fork() == 0:
        os.setsid()
        break
    time.sleep(0.005)
time.sleep(600)
"""


@pytest.mark.parametrize("kernel", ["5.14 and newer", "older"])
def test_everything_in_a_cgroup_is_killed_however_fast_it_forks(groups, kernel, monkeypatch):
    if kernel == "older":
        monkeypatch.setattr(cgroups, "_KILL", "no.such.file")
    groups.make(1)
    with subprocess.Popen(["/usr/bin/python3", "-c", FORKS], stdin=subprocess.PIPE, text=True) as process:
        assert groups.move(1, process.pid)
        process.stdin.write("\n")
        process.stdin.flush()
        until(lambda: len((groups.path_of(1) / "command" / "cgroup.procs").read_text(encoding="ascii").split()) > 3)
        assert not groups.remove(1)
        groups.kill(1)
        assert process.wait(timeout=10) == -signal.SIGKILL
        until(lambda: not groups.is_populated(1))
    assert groups.remove(1)
    assert not groups.path_of(1).exists()


def test_what_ended_is_not_moved_and_a_cgroup_that_is_gone_is_empty(groups):
    groups.make(1)
    with subprocess.Popen(["true"]) as process:
        process.wait()
        assert not groups.move(1, process.pid)
    assert groups.remove(1)
    assert (groups.is_populated(1), groups.remove(1)) == (False, True)
    groups.kill(1)


def test_a_container_that_comes_when_its_lease_is_over_is_killed_by_whoever_looks_next(groups, tmp_path):
    """Docker makes the folders of a cgroup that is gone anew."""
    machine = RealMachine(State(tmp_path / "state"), groups, Places(listed=tmp_path / "devices.json"))
    late = groups.path_of(7) / "docker-1234.scope"
    late.mkdir(parents=True)
    with subprocess.Popen(["sleep", "600"]) as container:
        (late / "cgroup.procs").write_text(str(container.pid), encoding="ascii")
        with machine.alone():
            life.tidy(machine)
        assert container.wait(timeout=10) == -signal.SIGKILL
    with machine.alone():
        life.tidy(machine)
    assert groups.numbers() == []


def test_no_number_comes_twice_even_where_a_cgroup_outlived_the_files(groups, tmp_path):
    groups.make(41)
    assert State(tmp_path / "state").new_number(*groups.numbers()) == 42
    assert State(tmp_path / "state").new_number() == 43
