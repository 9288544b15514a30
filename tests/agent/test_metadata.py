"""Builds and the instance metadata service: they could become the instance's role there. What is asked of ``ip``, and what that does."""

import pwd
import subprocess
import sys

import pytest

UID = pwd.getpwnam("nobody").pw_uid
GONE = 410, {"message": "the agent was given up"}
CONNECT = """
import os, socket, sys
[(family, *_, place)] = socket.getaddrinfo(sys.argv[2], 80, type=socket.SOCK_STREAM)
os.setuid(int(sys.argv[1]))
try:
    socket.socket(family).connect(place)
except OSError as error:
    print(type(error).__name__)
"""


def run(around, **settings):
    around.answers = [around.registered(), GONE]
    return around.run(**{"AGENT_USER": "nobody", "IPV6_INTERFACES": str(around.directory)} | settings)


@pytest.mark.needs("root")
def test_the_build_user_is_kept_from_it_before_anybody_is_asked(around):
    run(around)
    rules = [f"-4 rule add pref 1 to 169.254.169.254 uidrange {UID}-{UID} prohibit"]
    rules += [f"-6 rule add pref 1 to fd00:ec2::254 uidrange {UID}-{UID} prohibit"]
    assert around.ip_calls()[:2] == rules
    assert len(around.java_calls()) == 1


def test_so_are_its_subordinate_ids_which_rootless_containers_run_as(around):
    (around.directory / "subuid").write_text("anna:100000:65536\nnobody:165536:65536\nnobodyelse:231072:65536\n", encoding="utf-8")
    run(around, SUBORDINATE_IDS=str(around.directory / "subuid"), IPV6_INTERFACES="/nowhere")
    assert [call.split()[8] for call in around.ip_calls()[:2]] == [f"{UID}-{UID}", "165536-231071"]


def test_without_ipv6_there_is_nothing_to_block_there(around):
    run(around, IPV6_INTERFACES="/nowhere")
    assert {call.split()[0] for call in around.ip_calls()} == {"-4"}


@pytest.mark.needs("root")
def test_started_again_its_rules_are_there_already(around):
    add_to_ip(around, "echo 'RTNETLINK answers: File exists' >&2; exit 2")
    run(around)
    assert len(around.java_calls()) == 1


def test_where_it_cannot_be_blocked_nothing_registers_and_the_boot_fails(around):
    add_to_ip(around, "echo 'RTNETLINK answers: Operation not permitted' >&2; exit 2")
    said = run(around, BOOT_TIMEOUT_SECONDS="2")
    assert (around.asked, around.java_calls(), around.powered_off) == ([], [], True)
    assert "the instance metadata cannot be kept from nobody: RTNETLINK answers: Operation not permitted" in said


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"BLOCK_INSTANCE_METADATA": "no"}, marks=pytest.mark.needs("root"), id="off"),
        pytest.param({"AGENT_USER": ""}, id="builds as root"),
    ],
)
def test_nothing_is_blocked_where_it_is_off_or_builds_run_as_root(around, settings):
    said = run(around, **settings)
    assert around.ip_calls() == []
    assert len(around.java_calls()) == 1
    assert ("who cannot be kept from the instance metadata" in said) == ("AGENT_USER" in settings)


@pytest.mark.needs("root", "iproute2")
@pytest.mark.parametrize("address", ["169.254.169.254", "fd00:ec2::254"])
def test_the_kernel_does_what_the_rules_say(around, address):
    """In a network of its own, which leads nowhere: refused for the build user is not the same as unreachable for everybody."""
    run(around)
    rules = "\n".join(f"ip {call}" for call in around.ip_calls()[:2])
    python = f"{sys.executable} -c '{CONNECT}'"
    script = f"ip link set lo up\n{rules}\nfor uid in {UID} 0 {UID - 1}; do {python} $uid {address}; done"
    done = subprocess.run(["unshare", "--net", "sh", "-ec", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["PermissionError", "OSError", "OSError"]


def add_to_ip(around, script):
    with (around.directory / "ip").open("a", encoding="utf-8") as ip:
        ip.write(script)
