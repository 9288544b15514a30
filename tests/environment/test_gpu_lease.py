"""gpu-lease with real processes: what a command sees, what it holds, and what is left when somebody is killed."""

import json
import os
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from gpu_lease.cgroups import mounted
from support.lease_host import FOUR, GROUP, PYTHON, USER, host

pytestmark = pytest.mark.needs("root", "cgroups")

A01, A02, A03, NVIDIA = (device["id"] for device in FOUR)


def test_a_command_runs_as_who_asks_with_his_groups_folder_environment_and_words(machine):
    look = (
        "import os, sys, json; print(json.dumps([os.getuid(), os.getgid(), os.getgroups(), os.getcwd(), os.environ['MINE'], sys.argv[1:]]))"
    )
    facts = {"env": {"MINE": "ä b", "PATH": os.environ["PATH"]}, "extra_groups": [4, 27], "cwd": "/usr"}
    done = machine.runs(PYTHON, "-c", look, "a b", "--", "$x", **facts)
    assert json.loads(done.stdout) == [USER, GROUP, [4, 27], "/usr", "ä b", ["a b", "--", "$x"]], done.stderr


def test_it_reads_and_writes_what_is_passed_to_it_and_ends_as_it_ended(machine):
    done = subprocess.run(
        machine.run_words("sh", "-c", "cat; exit 7"), input="through", capture_output=True, text=True, check=False, timeout=20
    )
    assert (done.stdout, done.returncode) == ("through", 7)
    assert done.stderr.splitlines()[-1].startswith(f"gpu-lease: holds {A01} (lease 1), after ")


def test_a_command_that_a_signal_ended_ends_gpu_lease_by_the_same(machine):
    assert machine.runs("sh", "-c", "kill -SEGV $$").returncode == -signal.SIGSEGV
    assert machine.runs("sh", "-c", "kill -KILL $$").returncode == -signal.SIGKILL


def test_what_cannot_be_run_is_one_line_and_frees_the_device(machine):
    missing, folder = machine.runs("no-such-program"), machine.runs("/")
    assert (missing.returncode, missing.stderr.splitlines()[-1]) == (127, "gpu-lease: no-such-program: not found")
    assert (folder.returncode, folder.stderr.splitlines()[-1]) == (126, "gpu-lease: /: Permission denied")
    machine.until_free()


def test_nothing_of_python_is_left_in_the_command(machine):
    done = machine.runs(
        "env", "-u", "PATH", "sh", "-c", "export; grep SigIgn /proc/self/status", env={"PATH": os.environ["PATH"], "LANG": "C"}
    )
    assert "LC_CTYPE" not in done.stdout
    ignored = int(done.stdout.rpartition("SigIgn:")[2], 16)  # others may be, by whoever runs the tests
    assert [name for name in (signal.SIGPIPE, signal.SIGXFSZ) if ignored >> (name - 1) & 1] == []


VISIBLE = (
    "ROCR_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "CUDA_VISIBLE_DEVICES",
    "AMD_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--kind", "gfx1030", "--count", "2"), {"ROCR_VISIBLE_DEVICES": f"{A01},{A02}"}),
        (("--kind", "amd", "--count", "3"), {"ROCR_VISIBLE_DEVICES": f"{A01},{A02},{A03}"}),
        (("--kind", "GFX90A"), {"ROCR_VISIBLE_DEVICES": A03}),
        (("--kind", "nvidia"), {"CUDA_VISIBLE_DEVICES": NVIDIA}),
    ],
    ids=["two of a kind", "all of a vendor", "in any case", "nvidia"],
)
def test_the_vendor_s_variable_names_the_devices_and_no_other_one_is_left(machine, options, told):
    environment = {"PATH": os.environ["PATH"], **dict.fromkeys(VISIBLE, "7")}
    look = (
        "import os, json; print(json.dumps({name: value for name, value in os.environ.items() if name.endswith(('DEVICES', 'ORDINAL'))}))"
    )
    seen = json.loads(machine.runs(PYTHON, "-c", look, options=options, env=environment).stdout)
    ids = ",".join(told.values())
    assert seen == {**told, "GPU_LEASE_DEVICES": ids}


def test_a_command_is_told_nodes_addresses_and_its_cgroup(machine):
    look = "import os, json; print(json.dumps({name: value for name, value in os.environ.items() if name.startswith('GPU_LEASE')}))"
    seen = json.loads(machine.runs(PYTHON, "-c", look, options=("--kind", "gfx1030", "--count", "2")).stdout)
    assert seen["GPU_LEASE_NODES"] == "/dev/kfd /dev/dri/renderD128 /dev/dri/renderD129"
    assert seen["GPU_LEASE_PCI"] == "0000:03:00.0 0000:04:00.0"
    assert seen["GPU_LEASE_CGROUP"] == str(machine.cgroup(1))


def test_who_waits_gets_a_device_in_the_order_of_asking(machine):
    machine.has_devices(FOUR[:1])
    first = machine.starts("sleep", "60")
    machine.until_held(1)
    others = []
    for number in range(3):
        others.append(machine.starts("sh", "-c", f"echo {number} >> {machine.folder}/order; sleep 0.1", user=None))
        machine.until(lambda number=number: len(machine.status()["waiting"]) == number + 1, "one more waits")
    waiting = machine.status()["waiting"]
    assert [asker["lease"] for asker in waiting] == sorted(asker["lease"] for asker in waiting)
    first.terminate()
    assert [other.communicate(timeout=20) and other.returncode for other in others] == [0, 0, 0]
    assert (machine.folder / "order").read_text(encoding="ascii").split() == ["0", "1", "2"]


def test_one_who_waits_and_goes_away_keeps_nobody(machine):
    machine.has_devices(FOUR[:1])
    first = machine.starts("sleep", "60")
    machine.until_held(1)
    gone = machine.starts("sleep", "60")
    machine.until(lambda: len(machine.status()["waiting"]) == 1, "one waits")
    gone.kill()
    next_one = machine.starts("true")
    first.terminate()
    assert next_one.wait(timeout=20) == 0


def test_one_who_has_no_patience_is_told_so(machine):
    machine.has_devices(FOUR[:1])
    first = machine.starts("sleep", "60")
    machine.until_held(1)
    done = machine.runs("true", options=("--wait", "0.3"))
    assert (done.returncode, done.stderr.splitlines()[-1]) == (75, "gpu-lease: no device was free in time")
    assert machine.runs("true", options=("--wait", "0")).returncode == 75
    first.terminate()
    first.wait(timeout=20)
    assert machine.runs("true", options=("--wait", "0")).returncode == 0


def test_a_device_that_somebody_uses_without_asking_is_not_granted(machine):
    machine.has_devices([{**FOUR[0], "in_use_by": [1]}, FOUR[1]])
    assert machine.runs("sh", "-c", "echo $GPU_LEASE_DEVICES").stdout == f"{A02}\n"
    devices = {device["id"]: device for device in machine.status()["devices"]}
    assert (devices[A01]["state"], devices[A01]["in_use_by"]) == ("in use", "process 1")
    assert machine.runs("true", options=("--count", "2", "--wait", "1")).returncode == 75


def test_what_the_machine_can_never_give_is_refused_at_once(machine):
    five, other = machine.runs("true", options=("--count", "4")), machine.runs("true", options=("--kind", "gfx1100"))
    expected = "gpu-lease: the machine has 4 (gfx1030, gfx90a, sm_86): so many of that kind can never be free"
    assert (five.returncode, five.stderr.splitlines()[-1]) == (69, expected)
    assert (other.returncode, other.stderr.splitlines()[-1]) == (69, expected)
    machine.has_devices([])
    assert machine.runs("true").stderr.splitlines()[-1] == "gpu-lease: the machine has none: so many of that kind can never be free"
    assert machine.runs("true", options=("--count", "0")).returncode == 64


def test_a_command_within_a_lease_uses_what_that_holds(machine):
    """A build step of an agent that holds a device as a whole."""
    inner = " ".join(machine.run_words("sh", "-c", "'echo $GPU_LEASE_DEVICES in lease $GPU_LEASE'"))
    assert machine.runs("sh", "-c", inner, options=("--kind", "gfx90a")).stdout == f"{A03} in lease 1\n"
    more = " ".join(machine.run_words("true", options=("--count", "2")))
    done = machine.runs("sh", "-c", more)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        69,
        f"gpu-lease: runs within lease 2, which holds {A01}; ask that one for all that is needed",
    )


def test_status_tells_a_program_what_is_held_by_whom_since_when_and_who_waits(machine):
    machine.has_devices(FOUR[:1])
    before = time.time()
    first = machine.starts("sleep", "600", user=1)
    machine.until_held(1)
    second = machine.starts("sleep", "600", "--secret=x", options=("--kind", "amd"))
    machine.until(lambda: machine.status()["waiting"], "one waits")
    seen = machine.status()
    text = subprocess.run([machine.gpu_lease, "status", "--socket", machine.socket], capture_output=True, text=True, check=True).stdout
    second.kill()
    first.terminate()
    [device], [waiting] = seen["devices"], seen["waiting"]
    held = device.pop("held")
    assert device == {key: FOUR[0][key] for key in ("id", "kind", "vendor", "nodes", "pci")} | {
        "model": "",
        "state": "held",
        "in_use_by": None,
    }
    assert (held["user"], held["program"], held["count"], held["lease"]) == ("daemon", "sleep", 1, 1)
    assert before <= held["since"] <= time.time()
    assert (waiting["user"], waiting["program"], waiting["kind"], waiting["count"]) == ("nobody", "sleep", "amd", 1)
    assert text.splitlines()[0].startswith(f"{A01}  gfx1030  held by daemon (sleep) for ")
    assert text.splitlines()[1].startswith("waiting: nobody (sleep) for 1 amd, for ")
    assert "secret" not in json.dumps(seen) + text


@pytest.mark.parametrize(
    "said",
    [
        b"\n",
        b"[]\n",
        b"\xff\xfe\n",
        b"[" * 100_000 + b"\n",
        b'{"do": "run", "count": 1e99}\n',
        b'{"do": "run", "count": -1}\n',
        b'{"do": "run", "count": 2000}\n',
        b'{"do": "run", "kind": ["amd"]}\n',
        b'{"do": "run", "program": 7}\n',
        b'{"do": "run", "count": "1"}\n',
        b"x" * 3_000_000,
        b"",
    ],
    ids=lambda said: repr(said[:20]),
)
def test_what_is_not_understood_is_answered_in_a_line_and_harms_nobody(machine, said):
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(str(machine.socket))
        with suppress(BrokenPipeError, ConnectionResetError):  # more than anybody would read
            link.sendall(said)
            link.shutdown(socket.SHUT_WR)
        answer = b""
        with suppress(ConnectionResetError):
            while more := link.recv(65536):
                answer += more
    answers = [json.loads(line) for line in answer.splitlines()]
    assert answers[0] == {"hello": "gpu-lease"}
    assert [(one["code"], "\n" in one["error"]) for one in answers[1:]] == [(64, False)] * (len(said) not in {0, 3_000_000})
    assert machine.held() == {}
    assert machine.runs("true").returncode == 0


def test_nobody_can_hand_over_a_process_of_another_user(machine):
    """Root may say to be anybody. Whoever else says so is refused by the kernel, and what he sends is his own."""
    with subprocess.Popen(["sleep", "600"], user=1) as other:
        script = (
            "import json, os, socket, struct, sys\n"
            "link = socket.socket(socket.AF_UNIX); link.connect(sys.argv[1]); link.recv(4096)\n"
            'link.sendall(b\'{"do": "run"}\\n\'); link.recv(4096)\n'
            "who = [(socket.SOL_SOCKET, 2, struct.pack('3i', int(sys.argv[2]), 1, 1))]\n"
            "try:\n    link.sendmsg([b'{}\\n'], who)\nexcept PermissionError:\n    print('refused')\n"
        )
        done = subprocess.run(
            [PYTHON, "-c", script, str(machine.socket), str(other.pid)], user=USER, group=GROUP, capture_output=True, text=True, check=False
        )
        cgroup = Path(f"/proc/{other.pid}/cgroup").read_text(encoding="ascii")
        other.kill()
    assert done.stdout == "refused\n"
    assert "gpulease" not in cgroup


def test_only_root_can_open_what_the_locks_are_on(machine):
    """Who could lock a dead one's ticket would keep its device for ever."""
    asked = machine.starts("sleep", "600")
    machine.until_held(1)
    look = ["find", str(machine.folder / "run" / "state"), "-mindepth", "0"]
    assert subprocess.run(look, user=USER, capture_output=True, text=True, check=False).stdout.split() == [
        str(machine.folder / "run/state")
    ]
    modes = {path: oct(path.stat().st_mode & 0o777) for path in (machine.folder / "run" / "state").rglob("*") if path.is_file()}
    assert set(modes.values()) == {"0o600"}, modes
    asked.terminate()


@pytest.mark.needs("systemd")
def test_as_systemd_starts_it_a_supervisor_serves_the_connection_on_its_standard_input():
    """By systemd's own program for that, which listens as the socket unit does."""
    with host(activated=True) as machine:
        done = machine.runs("sh", "-c", "echo $GPU_LEASE_DEVICES; exit 3", user=None)
        assert (done.stdout, done.returncode) == (f"{A01}\n", 3)
        assert machine.held() == {}
        machine.starts("sleep", "600", user=None)
        machine.until_held(1)
        for supervisor in machine.supervisors():
            os.kill(supervisor, signal.SIGKILL)
        assert machine.runs("sh", "-c", "echo $GPU_LEASE_DEVICES", user=None).stdout == f"{A02}\n"


def test_from_inside_a_container_nothing_is_granted(machine):
    """It sees other processes than root's: to move it would take it out of its container's limits."""
    words = ["unshare", "--pid", "--fork", "--mount-proc", *machine.run_words("true")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=20)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        69,
        "gpu-lease: asked from inside a container: run gpu-lease outside, and the container as its command",
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run"], "which command? gpu-lease run --count 1 -- COMMAND ..."),
        (["run", "--count", "two", "--", "true"], "argument --count: invalid int value: 'two' (--help lists what there is)"),
        (["lend"], "argument COMMAND: invalid choice: 'lend'"),
        (["status", "--", "true"], "only run takes a command: true"),
    ],
)
def test_a_wrong_command_line_is_one_line(machine, words, said):
    done = subprocess.run([machine.gpu_lease, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (64, 1)
    assert done.stderr.startswith(f"gpu-lease: {said}")


def test_a_second_pair_of_dashes_is_the_command_s(machine):
    assert machine.runs("echo", "a", "--", "b").stdout == "a -- b\n"
    words = [machine.gpu_lease, "run", "--socket", str(machine.socket), "echo", "a", "--", "b"]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "a -- b\n"


def test_where_nothing_hands_out_devices_that_is_one_line(machine):
    machine.socket.unlink()
    done = machine.runs("true")
    assert (done.returncode, done.stderr) == (
        69,
        f"gpu-lease: nothing hands out devices on this machine ({machine.socket}: No such file or directory)\n",
    )


@pytest.mark.parametrize(
    ("wrapped", "said"),
    [
        (
            "mount -o remount,bind,ro",
            "no cgroup can be made in {mount} (Read-only file system): gpu-lease runs on the machine itself, not in a container",
        ),
        ("umount", "this machine has no cgroups of version 2, and without them no device can be held"),
    ],
    ids=["read-only", "none"],
)
def test_where_no_cgroup_can_be_made_that_is_one_line(wrapped, said):
    script = f'{wrapped} {mounted()}; exec "$@"'
    with host(FOUR, "unshare", "--mount", "sh", "-c", script, "sh") as made:
        assert made.serving.wait(timeout=20) == 69
        assert made.serving.stdout.read() == f"gpu-lease: {said.format(mount=mounted())}\n"
