"""A host of one's own runs the same agent: its keys come from a command, and it is never powered off."""

import json
import os
import shlex
import stat
import subprocess
import time

import pytest

from agent.conftest import SECRET
from packaging_root import ROOT
from support import processes
from support.debian import run
from support.signatures import KEYS, REGION

GONE = 410, {"message": "it was given up here"}


def a_host(around, *answers, **settings):
    """Run the agent as on a host whose command prints the keys."""
    printed = {"Version": 1, "AccessKeyId": KEYS.access_key, "SecretAccessKey": KEYS.secret_key, "SessionToken": KEYS.token}
    keys = around.directory / "keys.json"
    keys.write_text(json.dumps(printed), encoding="utf-8")
    around.imds, around.answers = False, list(answers)
    given = {"HOST": "yes", "CREDENTIALS_COMMAND": shlex.join(["cat", str(keys)]), "BLOCK_INSTANCE_METADATA": "no"}
    return around.run(**({"seconds": 5} | given | settings))


def told(around, *controllers):
    connections = [{"controller": name, "url": f"{around.url}/jenkins/", "name": "rocm-1", "secret": SECRET} for name in controllers]
    return 200, {"node": "rocm-1", "connections": connections, "poll_seconds": 1}


def test_it_signs_with_the_keys_that_its_command_prints(around):
    around.builds_run("sleep 60")
    a_host(around, told(around, "main"))
    assert len(around.asked) >= 2
    assert set(around.asked) == {""}
    assert len(around.java_calls()) == 1


def test_told_that_it_is_given_up_it_disconnects_and_stays_on(around):
    around.builds_run("sleep 60")
    said = a_host(around, told(around, "main"), told(around, "main"), GONE)
    assert around.directory.joinpath("ended").read_text(encoding="utf-8").split() == ["rocm-1"]
    assert ("disconnecting: it was given up here (410)" in said, around.powered_off) == (True, False)


def test_nothing_else_ends_its_connections(around):
    around.builds_run("sleep 60")
    a_host(around, told(around, "main"), (403, {"message": "no"}), (503, {}), (410, {"Message": "a proxy's own"}))
    assert (around.directory.joinpath("ended").read_text(encoding="utf-8"), around.powered_off) == ("", False)


def test_nobody_who_tells_it_who_it_is_and_a_refusal_never_power_it_off(around):
    a_host(around, (403, {"message": "the caller has none of the agent roles"}), BOOT_TIMEOUT_SECONDS="1")
    assert (len(around.asked) >= 2, around.powered_off) == (True, False)


def test_a_command_that_fails_is_tried_again(around):
    said = a_host(around, told(around, "main"), CREDENTIALS_COMMAND="false", seconds=4)
    assert (around.asked, "no identity yet: CREDENTIALS_COMMAND ended with status" in said, around.powered_off) == ([], True, False)


def test_it_says_which_devices_are_held(around):
    status = {
        "devices": [{"id": "left", "kind": "gfx1030", "vendor": "amd", "nodes": [], "state": "held", "user": "jenkins-main"}],
        "waiting": [{"user": "alice"}],
    }
    lease = around.directory / "gpu-lease"
    lease.write_text(f"#!/bin/sh\n[ \"$*\" = 'status --json' ] && echo {shlex.quote(json.dumps(status))}\n", encoding="utf-8")
    lease.chmod(0o755)
    a_host(around, told(around, "main"), GPU_LEASE=str(lease), seconds=3)
    said = json.loads(around.bodies[0])
    assert said["devices"] == [{"id": "left", "kind": "gfx1030", "state": "held", "user": "jenkins-main"}]
    assert said["waiting"] == 1


def test_what_hands_devices_out_and_says_nonsense_is_not_listened_to(around):
    around.builds_run("sleep 60")
    lease = around.directory / "gpu-lease"
    lease.write_text('#!/bin/sh\necho \'{"devices": [7], "waiting": null}\'\n', encoding="utf-8")
    lease.chmod(0o755)
    a_host(around, told(around, "main"), GPU_LEASE=str(lease), seconds=3)
    assert "devices" not in json.loads(around.bodies[0])


INSTALLER = ROOT / "agent" / "linux" / "install-host"


def install(tmp_path, **settings):
    """Run the installer below a directory, with a systemctl that notes how it was called."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("systemctl", "java"):
        (programs / name).write_text(f'#!/bin/sh\necho "{name} $*" >>{tmp_path}/called\n', encoding="utf-8")
        (programs / name).chmod(0o755)
    keys = tmp_path / "keys"
    keys.write_text('{"AccessKeyId": "A", "SecretAccessKey": "S", "SessionToken": "T"}', encoding="utf-8")
    given = {
        "REGISTER_URL": "https://x.example.org/",
        "REGION": REGION,
        "CREDENTIALS_COMMAND": f"cat {keys}",
        "ROOT": str(tmp_path / "root"),
    }
    environment = {"PATH": f"{programs}:/usr/sbin:/usr/bin:/sbin:/bin"} | given | settings
    return subprocess.run([INSTALLER], env=environment, capture_output=True, text=True, check=False)


def test_the_installer_makes_a_service_of_it_whose_settings_root_alone_may_read(tmp_path):
    done = install(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    root = tmp_path / "root"
    settings = root / "etc" / "autoscaler-agent.conf"
    assert f'CREDENTIALS_COMMAND="cat {tmp_path}/keys"' in settings.read_text(encoding="utf-8").splitlines()
    assert "HOST=yes" in settings.read_text(encoding="utf-8")
    assert stat.S_IMODE(settings.stat().st_mode) == 0o600
    assert os.access(root / "usr" / "local" / "sbin" / "autoscaler-agent", os.X_OK)
    called = (tmp_path / "called").read_text(encoding="utf-8").splitlines()
    assert called == ["systemctl daemon-reload", "systemctl enable autoscaler-agent", "systemctl restart autoscaler-agent"]


@pytest.mark.parametrize("command", [True, False], ids=["keys of a command", "an instance's own keys"])
def test_on_the_machine_of_a_controller_the_same_service_only_tells(tmp_path, command):
    done = install(tmp_path, CONTROLLER="yes", **({} if command else {"CREDENTIALS_COMMAND": ""}))
    assert (done.returncode, done.stderr) == (0, "")
    lines = (tmp_path / "root/etc/autoscaler-agent.conf").read_text(encoding="utf-8").splitlines()
    assert {"CONTROLLER=yes", f"HOST={'yes' if command else 'no'}", "BLOCK_INSTANCE_METADATA=no"} <= set(lines)
    assert (tmp_path / "root/usr/local/lib/autoscaler-agent/autoscaler_telemetry.py").exists()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"REGION": ""}, "REGION: is missing"),
        ({"REGISTER_URL": ""}, "REGISTER_URL: is missing"),
        ({"CREDENTIALS_COMMAND": "echo {}"}, "CREDENTIALS_COMMAND: prints no keys of a role"),
        ({"CREDENTIALS_COMMAND": "false"}, "CREDENTIALS_COMMAND: prints no keys of a role"),
    ],
    ids=str,
)
def test_what_is_missing_is_said_and_nothing_is_installed(tmp_path, settings, said):
    done = install(tmp_path, **settings)
    assert done.returncode != 0
    assert said in done.stderr
    assert not (tmp_path / "root").exists()


@pytest.mark.needs("shellcheck")
def test_the_installer_passes_shellcheck():
    run("shellcheck", str(INSTALLER))


def a_lease_program(around, script):
    """A gpu-lease that notes how it was called, and then does this."""
    lease = around.directory / "gpu-lease"
    status = json.dumps({"devices": [{"id": "left", "kind": "gfx1030", "state": "free"}], "waiting": []})
    called = around.directory / "leases"
    lease.write_text(
        f'#!/bin/sh\nif [ "$1" = status ]; then echo {shlex.quote(status)}; exit; fi\necho "$*" >>{called}\n{script}\n', encoding="utf-8"
    )
    lease.chmod(0o755)
    return {"GPU_LEASE": str(lease)}


RUNS_IT = "export ROCR_VISIBLE_DEVICES='GPU-1 two'; export GPU_LEASE_NODES=/dev/dri/renderD128; shift 2; exec \"$@\""


def test_it_holds_a_device_for_a_person_and_writes_down_which_one_it_is(around):
    lease = a_lease_program(around, RUNS_IT)
    around.builds_run("sleep 60")
    answer = told(around, "main")
    answer[1]["people"] = [{"person": "alice w/ü", "until": time.time() + 600}]
    a_host(around, answer, seconds=3, **lease)
    file = around.directory / "run" / "people" / "alice-w-ü"
    shell = subprocess.run(["sh", "-c", f'. {file}; echo "$ROCR_VISIBLE_DEVICES"'], capture_output=True, text=True, check=True)
    assert shell.stdout == "GPU-1 two\n"
    assert (around.directory / "leases").read_text(encoding="utf-8").count("run -- ") == 1  # asked again, it holds on


def test_once_it_is_not_told_of_them_any_more_it_lets_go(around):
    lease = a_lease_program(around, RUNS_IT)
    around.builds_run("sleep 60")
    with_alice = told(around, "main")
    with_alice[1]["people"] = [{"person": "alice", "until": time.time() + 600}]
    a_host(around, with_alice, with_alice, told(around, "main"), seconds=5, **lease)
    assert not (around.directory / "run" / "people" / "alice").exists()
    assert processes.naming(f"{around.directory}/run/people") == []
    assert around.directory.joinpath("ended").read_text(encoding="utf-8") == ""  # builds go on


@pytest.mark.parametrize(
    "people", [7, [7], [{"person": 7, "until": 9e9}], [{"person": "a", "until": "x"}], [{"person": "a", "until": 1}]], ids=str
)
def test_people_that_make_no_sense_or_whose_time_is_over_get_nothing(around, people):
    lease = a_lease_program(around, RUNS_IT)
    around.builds_run("sleep 60")
    answer = told(around, "main")
    answer[1]["people"] = people
    said = a_host(around, answer, seconds=3, **lease)
    assert not (around.directory / "leases").exists()
    assert "Traceback" not in said
