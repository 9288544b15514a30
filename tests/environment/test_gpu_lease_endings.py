"""How leases end: with the command, with a signal, with who asked, with a supervisor that is killed, at a person's terminal."""

import os
import signal
import subprocess

import pytest

from support.lease_host import FOUR, PYTHON, has_ended
from support.pseudo_terminal import CTRL_C, PseudoTerminal

pytestmark = pytest.mark.needs("root", "cgroups")

A01 = FOUR[0]["id"]

DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 1000)
        time.sleep(600)
    os._exit(0)
os.wait()
"""


def test_what_a_command_leaves_behind_is_killed_before_its_device_is_free(machine):
    """It has left its session, its parent and all descriptors, as a daemon does."""
    assert machine.runs(PYTHON, "-c", DAEMON).returncode == 0
    assert machine.held() == {}
    assert not machine.cgroup(1).exists()


def test_a_container_that_joined_the_cgroup_holds_the_device_until_it_is_killed(machine):
    """Docker makes the container's cgroup as root below the one that it is told, and a process of its own daemon enters it."""
    asked = machine.starts("sleep", "60")
    machine.until_held(1)
    below = machine.cgroup(1) / "docker-1234.scope"
    below.mkdir()
    container = subprocess.Popen(["sleep", "600"])
    (below / "cgroup.procs").write_text(str(container.pid), encoding="ascii")
    asked.terminate()
    assert container.wait(timeout=20) == -signal.SIGKILL
    machine.until_free()
    assert not below.exists()


def test_a_command_outlives_its_supervisor_and_keeps_its_device(machine):
    machine.has_devices(FOUR[:1])
    asked = machine.starts("sh", "-c", "sleep 2; echo done", user=None)
    [held] = machine.until_held(1).values()
    assert held["supervised"]
    [supervisor] = machine.supervisors()
    os.kill(supervisor, signal.SIGKILL)
    next_one = machine.starts("true")
    machine.until(lambda: machine.status()["waiting"], "the next one waits")
    [still] = machine.held().values()
    assert (still["lease"], still["supervised"]) == (held["lease"], False)
    assert asked.communicate(timeout=20)[0] == "done\n"
    assert next_one.wait(timeout=20) == 0


def test_what_is_left_of_a_command_whose_supervisor_was_killed_is_killed_as_well(machine):
    asked = machine.starts("sh", "-c", f"{PYTHON} -c '{DAEMON}'; sleep 1")
    machine.until_held(1)
    [supervisor] = machine.supervisors()
    os.kill(supervisor, signal.SIGKILL)
    asked.communicate(timeout=20)
    # Who asked has seen to it before he ended, so nobody need look.
    assert not machine.cgroup(1).exists()
    assert list((machine.folder / "run" / "state" / "leases").iterdir()) == []


def test_killing_gpu_lease_kills_its_command(machine):
    """As when systemd stops the agent's service: the command runs in another cgroup, and ends with it nevertheless."""
    asked = machine.starts("sleep", "600")
    [held] = machine.until_held(1).values()
    asked.kill()
    machine.until_free()
    assert has_ended(held["pid"])


def test_killing_both_kills_the_command_as_soon_as_anybody_looks(machine):
    asked = machine.starts("sleep", "600")
    [held] = machine.until_held(1).values()
    [supervisor] = machine.supervisors()
    os.kill(supervisor, signal.SIGKILL)
    asked.kill()
    machine.until_free()
    assert has_ended(held["pid"])


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "USR1", "QUIT"])
def test_signals_are_passed_on_and_the_command_decides(machine, name):
    script = f"trap 'echo {name}; exit 3' {name}; echo ready; while :; do sleep 0.05; done"
    asked = machine.starts("bash", "-c", script)
    assert asked.stdout.readline() == "ready\n"
    asked.send_signal(getattr(signal, f"SIG{name}"))
    said, _ = asked.communicate(timeout=20)
    assert (said, asked.returncode) == (f"{name}\n", 3)


def on_a_terminal(machine, *command):
    words = machine.run_words(*command, options=("--quiet",))
    return PseudoTerminal(*words, cwd=machine.folder, env={"PATH": "/usr/bin:/bin", "PS1": "prompt> "}, columns=200)


def test_a_person_interrupts_the_command_once_and_it_decides(machine):
    with on_a_terminal(
        machine, "bash", "-c", "trap 'echo got one; n=1' INT; tty; while [ -z \"$n\" ]; do sleep 0.1; done; sleep 1; exit 5"
    ) as screen:
        screen.wait_for("/dev/pts/", 20)
        screen.press(CTRL_C)
        assert screen.wait_for_end(20) == 5
        assert [line for line in screen.lines() if "got one" in line] == ["^Cgot one"]


def test_a_person_s_shell_has_jobs_that_stop_and_go_on(machine):
    with on_a_terminal(machine, "bash", "--norc") as screen:
        screen.wait_for("prompt>$", 20)
        screen.press(b"echo devices $GPU_LEASE_DEVICES; sleep 600\n")
        screen.wait_for(f"^devices {A01}$", 20)
        screen.press(b"\x1a")
        screen.wait_for("Stopped", 20)
        screen.press(b"fg\n")
        screen.wait_for("^sleep 600", 20)
        screen.press(CTRL_C)
        screen.wait_for(r"^\^C", 20)
        screen.press(b"exit 4\n")
        assert screen.wait_for_end(20) == 4


def test_gpu_lease_itself_is_a_job_that_stops_and_goes_on(machine):
    inner = " ".join(machine.run_words("sh", "-c", "'echo begun; sleep 3; echo went on'", options=("--quiet",)))
    with PseudoTerminal("bash", "--norc", cwd=machine.folder, env={"PATH": "/usr/bin:/bin", "PS1": "prompt> "}, columns=200) as screen:
        screen.wait_for("prompt>$", 20)
        screen.press(f"{inner}\n".encode())
        screen.wait_for("^begun", 20)
        screen.press(b"\x1a")
        screen.wait_for("Stopped", 20)
        assert len(machine.held()) == 1
        screen.press(b"fg\n")
        screen.wait_for("^went on", 20)
        screen.press(b"exit 6\n")
        assert screen.wait_for_end(20) == 6
    machine.until_free()
