"""What holds an agent back at each start: cloud-init's scripts, Docker, and a hook of its operator's."""

import threading

import pytest

from packaging_root import ROOT

UNIT = (ROOT / "agent/linux/autoscaler-agent.service").read_text(encoding="utf-8")


@pytest.fixture
def cloud_init(around):
    directory = around.directory / "cloud-init"
    directory.mkdir()
    (directory / "enabled").touch()
    return directory


def hook(around, script):
    path = around.directory / "ready"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_it_asks_nobody_who_it_is_before_cloud_init_has_ended(around, cloud_init):
    around.answers = [around.registered()]
    said = around.run(seconds=3)
    assert "waiting for cloud-init's scripts to end" in said
    assert (around.bodies, around.powered_off) == ([], False)
    (cloud_init / "result.json").touch()
    assert "waiting" not in around.run(seconds=3)
    assert around.bodies


def test_it_goes_on_once_cloud_init_ends(around, cloud_init):
    around.answers = [around.registered()]
    threading.Timer(1.5, (cloud_init / "result.json").touch).start()
    around.run(seconds=5)
    assert around.bodies


def test_scripts_that_never_end_do_not_keep_it_for_ever(around, cloud_init):
    around.answers = [around.registered()]
    said = around.run(seconds=6, BOOT_TIMEOUT_SECONDS="4")
    assert "cloud-init's scripts have not ended within 2 s; going on without them" in said
    assert around.bodies


def test_a_machine_without_cloud_init_or_with_it_switched_off_waits_for_nothing(around):
    around.answers = [around.registered()]
    assert "waiting" not in around.run(seconds=3)
    assert around.bodies


def test_an_operators_hook_holds_it_back_until_it_exits_with_0(around):
    around.answers = [around.registered()]
    hook(around, f'echo "no mount yet"; [ -e {around.directory}/mounted ] || {{ touch {around.directory}/mounted; exit 3; }}')
    said = around.run(seconds=9)
    assert "ready holds this agent back (3)" in said
    assert "no mount yet" in said
    assert around.bodies


def test_a_machine_that_is_never_ready_powers_itself_off_after_twice_its_boot_deadline(around):
    around.answers = [around.registered()]
    hook(around, "exit 1")
    said = around.run(seconds=20, BOOT_TIMEOUT_SECONDS="1")
    assert around.powered_off
    assert "not ready for builds within 2 s" in said
    assert around.bodies == []


def test_a_hook_that_hangs_is_ended_at_the_boot_deadline(around):
    around.answers = [around.registered()]
    hook(around, "exec sleep 100")
    said = around.run(seconds=20, BOOT_TIMEOUT_SECONDS="2")
    assert "holds this agent back (TimeoutExpired)" in said
    assert around.powered_off


def test_a_hook_that_is_no_program_holds_nothing_back(around):
    around.answers = [around.registered()]
    hook(around, "exit 1").chmod(0o644)
    around.run(seconds=3)
    assert around.bodies


def test_the_unit_starts_after_docker_and_network_mounts_and_makes_no_cycle():
    [after] = [line for line in UNIT.splitlines() if line.startswith("After=")]
    assert {"docker.service", "remote-fs.target", "network-online.target"} <= set(after.removeprefix("After=").split())
    assert not {"cloud-final.service", "cloud-init.target", "multi-user.target"} & set(after.removeprefix("After=").split())


def test_on_windows_docker_and_a_hook_come_first_too():
    script = (ROOT / "agent/windows/autoscaler-agent.ps1").read_text(encoding="utf-8")
    assert script.index("\nWait-UntilReady\n") < script.index("\nwhile ($true)")
    assert "ready.ps1" in script
