"""Real people, supervisors and commands of gpu-lease, killed with SIGKILL at any moment, over four devices."""

import os
import signal
import subprocess
import time
from contextlib import suppress
from random import Random

import pytest

from support.lease_host import FOUR, PYTHON, host
from support.sampling import WHOLE

# A stand-in for a card: who uses it holds a lock on its file, and so does everything that he leaves behind. Two at once are written down.
USES = """
import fcntl, os, random, sys, time
folder, held = sys.argv[1], os.environ["GPU_LEASE_DEVICES"].split(",")
for device in held:
    card = os.open(f"{folder}/{device}", os.O_RDWR | os.O_CREAT)
    os.set_inheritable(card, True)
    try:
        fcntl.flock(card, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        open(f"{folder}/twice", "a").write(f"{device} is in use, and granted to {os.environ['GPU_LEASE']}\\n")
open(f"{folder}/begun", "a").write(f"{os.environ['GPU_LEASE']}\\n")
if random.random() < 0.5 and os.fork() == 0:
    os.setsid()
    time.sleep(600)
time.sleep(random.uniform(0, 0.3))
"""
OPTIONS = [(), (), ("--kind", "gfx1030"), ("--count", "2", "--kind", "gfx1030"), ("--count", "3"), ("--kind", "nvidia")]
SECONDS = 60 if WHOLE else 5
AT_ONCE = 8


@pytest.mark.needs("root", "cgroups")
def test_no_device_is_used_by_two_and_none_is_lost_whoever_is_killed(record_property):
    random, killed = Random(7), 0
    with host() as machine:
        cards = machine.folder / "cards"
        cards.mkdir()
        cards.chmod(0o777)
        asking, end = [], time.monotonic() + SECONDS
        while time.monotonic() < end:
            asking = [process for process in asking if process.poll() is None]
            while len(asking) < AT_ONCE:
                asking.append(machine.starts(PYTHON, "-c", USES, str(cards), options=(*random.choice(OPTIONS), "--quiet")))
            time.sleep(random.uniform(0, 0.05))
            killed += killed_one(machine, asking, random)
        for process in asking:
            process.wait(timeout=60)
        machine.until_free()
        assert not (cards / "twice").exists(), (cards / "twice").read_text(encoding="utf-8")
        assert machine.runs("true", options=("--count", "3", "--kind", "amd")).returncode == 0
        assert machine.runs("true", options=("--kind", "nvidia")).returncode == 0
        begun = len((cards / "begun").read_text(encoding="ascii").split())
        ends_at = time.monotonic() + 10  # the last supervisor is about to leave
        while (left := _left(machine)) and time.monotonic() < ends_at:
            time.sleep(0.1)
        assert left == []
        assert machine.supervisors() == []
    assert begun > SECONDS, "too little was tried"
    record_property("counted", ("real commands with devices", begun))
    record_property("counted", ("real processes of leases killed", killed))


def killed_one(machine, asking, random):
    """Kill a supervisor, one who asks, or a command."""
    what = random.choice(["supervisor", "asker", "command", "nobody", "nobody"])
    if what == "asker":
        random.choice(asking).kill()
    elif what == "supervisor" and (supervisors := machine.supervisors()):
        end(random.choice(supervisors))
    elif what == "command" and (held := [one["pid"] for one in machine.held().values() if one["pid"]]):
        end(random.choice(held))
    else:
        return 0
    return 1


def end(pid):
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def test_the_stand_in_for_a_card_notices_two_at_once(tmp_path):
    """Without leases: the test above can fail."""
    uses = USES.replace("uniform(0, 0.3)", "uniform(1, 1)").replace("os.fork() == 0", "False")
    environment = {"GPU_LEASE_DEVICES": FOUR[0]["id"], "GPU_LEASE": "1"}
    both = [subprocess.Popen([PYTHON, "-c", uses, str(tmp_path)], env=environment) for _ in range(2)]
    assert [process.wait(timeout=20) for process in both] == [0, 0]
    assert (tmp_path / "twice").exists()


def _left(machine):
    """What is kept of those who hold devices, or wait for one."""
    return [path for name in ("tickets", "leases") for path in (machine.folder / "run" / "state" / name).iterdir()]
