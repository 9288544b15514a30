"""gpu-lease as it is installed: units of systemd, slices, services that are stopped. A real systemd is the first process in there."""

import json
import re

import pytest

from packaging_root import ROOT
from support.booted import boots_and_runs
from support.debian import inside, run
from support.lease_host import FOUR

pytestmark = pytest.mark.needs("root", "cgroups", "debootstrap")

A01, A02, A03 = (device["id"] for device in FOUR[:3])
# Each part is told apart by a line that begins with ==.
SCRIPT = r"""
status() { gpu-lease status --json | tr -d '\n'; echo; }
until_() { for _ in $(seq 600); do if eval "$1"; then return; fi; sleep 0.1; done; echo "not so: $1"; }
left() { { pgrep -ax sleep; ls -d /sys/fs/cgroup/gpulease.slice/*/; } 2>/dev/null | sed 's/^/left: /'; }
held() { gpu-lease status --json | grep -c '"state": "held"'; }
echo '== switched on'
systemctl enable --now gpu-lease.socket
systemctl is-active gpu-lease.socket
stat -c %a /run/gpu-lease/socket
echo '== a command of the build user'
words='id -un; grep ^0 /proc/self/cgroup; echo $GPU_LEASE_CGROUP_PARENT; setsid sleep 500 & exit 5'
runuser -u jenkins -- gpu-lease run --quiet -- sh -c "$words"
echo "code $?"
left
echo '== a container, as the systemd driver of Docker starts it'
(runuser -u jenkins -- gpu-lease run --quiet --count 3 --kind amd -- sleep 400 >/dev/null 2>&1 &)
until_ '[ "$(held)" = 3 ]'
(systemd-run --quiet --scope --slice=gpulease-2.slice sleep 401 &)
until_ 'pgrep -f "sleep 401" >/dev/null'
systemctl daemon-reload
until_ 'grep -qs . /sys/fs/cgroup/gpulease.slice/gpulease-2.slice/*.scope/cgroup.procs'
status
echo '== its supervisor is killed'
until_ '[ "$(systemctl list-units --no-legend "gpu-lease@*" | wc -l)" = 1 ]'
kill -9 "$(systemctl show 'gpu-lease@*' -p MainPID --value | head -n 1)"
until_ 'gpu-lease status | grep -q "supervisor was killed"'
status
pkill -f '^sleep 400'
until_ '[ "$(held)" = 0 ]'
left
echo '== a service is stopped'
systemd-run --quiet --unit=agent --uid=jenkins gpu-lease run -- sleep 600
until_ '[ "$(held)" = 1 ]'
systemctl stop agent
until_ '[ "$(held)" = 0 ]'
left
echo '== nothing runs'
until_ '[ -z "$(systemctl list-units --no-legend "gpu-lease@*")" ]'
systemctl list-units --no-legend --all 'gpu-lease*'
"""


@pytest.fixture(scope="module")
def said(debian):
    """What each part of the script said."""
    run("env", f"ROOT={debian}", str(ROOT / "agent/gpu-lease/install"))
    inside(debian, "useradd --create-home jenkins; mkdir /etc/gpu-lease")
    (debian / "etc/gpu-lease/devices.json").write_text(json.dumps({"devices": FOUR}), encoding="utf-8")
    parts = re.split(r"^== (.*)\n", boots_and_runs(debian, SCRIPT), flags=re.MULTILINE)
    return dict(zip(parts[1::2], (part.splitlines() for part in parts[2::2]), strict=True))


def states(lines):
    assert len(lines) == 1, lines
    return {device["id"]: device["held"]["supervised"] if device["held"] else None for device in json.loads(lines[0])["devices"]}


def test_the_socket_is_open_to_everybody(said):
    assert said["switched on"][-2:] == ["active", "666"]


def test_a_command_runs_in_a_slice_and_nothing_of_it_is_left(said):
    inside_ = "0::/gpulease.slice/gpulease-1.slice/command"
    assert said["a command of the build user"] == ["jenkins", inside_, "gpulease-1.slice", "code 5"]


def test_a_scope_in_that_slice_is_part_of_the_lease_and_systemd_may_reload(said):
    assert states(said["a container, as the systemd driver of Docker starts it"]) == {A01: True, A02: True, A03: True, FOUR[3]["id"]: None}


def test_a_killed_supervisor_ends_no_command_and_its_end_ends_all(said):
    assert states(said["its supervisor is killed"]) == {A01: False, A02: False, A03: False, FOUR[3]["id"]: None}


def test_a_service_that_is_stopped_takes_its_command_along(said):
    assert said["a service is stopped"] == []


def test_while_nobody_asks_only_systemd_listens(said):
    [unit] = said["nothing runs"]
    assert unit.split()[:4] == ["gpu-lease.socket", "loaded", "active", "listening"]
