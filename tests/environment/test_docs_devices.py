"""The commands and scripts of docs/devices.md, run on real leases of cards that are made up, with stand-ins for what uses them."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_lease.devices import listed
from packaging_root import ROOT
from support.lease_host import FOUR, Host, host
from support.page_commands import Block, blocks_of, commands_of

pytestmark = pytest.mark.needs("root", "cgroups")

PAGE = ROOT / "docs" / "devices.md"
COMMANDS = [command for command in commands_of(PAGE) if command.program == "gpu-lease"]
SCRIPTS = [block for block in blocks_of(PAGE) if block.language == "sh"]
# What a command starts: here it says how it was called, and with which devices.
STAND_IN = '#!/bin/sh\necho "$(basename "$0") $*"\necho "ROCR=${ROCR_VISIBLE_DEVICES-} CUDA=${CUDA_VISIBLE_DEVICES-}"\n'
PROGRAMS = ("pytest", "train.sh", "java", "docker", "podman", "autopkgtest", "rocminfo", "nvidia-smi")
# Beside cgroups of version 1 those of version 2 have another place, which no container can join.
AS_ON_A_SERVER = 'umount -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup; exec "$@"'
ONE, OTHER, NVIDIA = FOUR[0]["id"], FOUR[1]["id"], FOUR[3]["id"]


@pytest.fixture(scope="module")
def machine() -> Iterator[Host]:
    with host(FOUR, "unshare", "--mount", "sh", "-c", AS_ON_A_SERVER, "sh") as made:
        programs = made.folder / "programs"
        programs.mkdir()
        for name in PROGRAMS:
            written(programs / name, STAND_IN)
        written(made.folder / "train.sh", STAND_IN)
        # As gpu-lease would be called, but for where everything is.
        list_ = f'[ "$1" != list ] || exec {made.gpu_lease} list --devices {made.folder}/devices.json'
        others = f'word=$1; shift; exec {made.gpu_lease} "$word" --socket {made.socket} "$@"'
        written(programs / "gpu-lease", f"#!/bin/sh\n{list_}\n{others}\n")
        yield made


def written(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def typed(machine: Host, text: str) -> str:
    path = f"{machine.folder}/programs:/usr/bin:/bin"
    facts = {"cwd": machine.folder, "env": {"PATH": path}, "stdin": subprocess.DEVNULL}
    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=False, timeout=60, **facts)
    assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
    return done.stdout


SAYS = {
    "gpu-lease run -- pytest": f"pytest -m gpu\nROCR={ONE} CUDA=\n",
    "gpu-lease run --count 2": f"train.sh \nROCR={ONE},{OTHER} CUDA=\n",
    "gpu-lease list": f"{ONE}  ",
    "gpu-lease status": f"{ONE}  ",
    "gpu-lease run --kind gfx1030 -- java": "java -jar agent.jar -url https://jenkins.example.org/ -name gpu-1 -secret @secret -webSocket",
    "gpu-lease run -- bash": "",
    "gpu-lease run --kind amd": f"rocminfo \nROCR={ONE} CUDA=\n",
    "gpu-lease run --kind nvidia": f"nvidia-smi -L\nROCR= CUDA={NVIDIA}\n",
}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.text)
def test_a_command_of_the_page_runs_with_its_devices(machine, command):
    [expected] = [said for start, said in SAYS.items() if command.text.startswith(start)]
    assert typed(machine, command.text).startswith(expected)


ON = "-e ROCR_VISIBLE_DEVICES --device=/dev/kfd --device=/dev/dri/renderD128"
CALLED = {
    "in-docker.sh": f"docker run --rm --cgroup-parent PARENT {ON} rocm/dev-ubuntu-24.04 rocminfo\nROCR={ONE}",
    "in-podman.sh": f"podman run --rm --cgroups=disabled --group-add keep-groups {ON} rocm/debian:unstable rocminfo\n",
    "in-qemu.sh": "autopkgtest -B rocrand -- qemu+rocm --gpu 0000:03:00.0 unstable.img\n",
}


def name_of(block: Block) -> str:
    """What the page calls a script: the last word of its first comment."""
    [line] = [line for line in block.text.splitlines() if "gpu-lease run" in line]
    return line.split()[-1].removeprefix("./")


@pytest.mark.parametrize("block", SCRIPTS, ids=name_of)
def test_a_script_of_the_page_passes_on_what_it_holds(machine, block):
    name = name_of(block)
    written(machine.folder / name, block.text)
    said = typed(machine, f"gpu-lease run --kind gfx1030 -- ./{name}")
    number = json.loads(typed(machine, "gpu-lease run --quiet -- sh -c 'echo $GPU_LEASE'")) - 1
    assert said.startswith(CALLED[name].replace("PARENT", f"{machine.slice}-{number}.slice"))


def test_every_script_and_command_of_the_page_was_tried():
    assert {name_of(block) for block in SCRIPTS} == set(CALLED)
    assert len(COMMANDS) == len(SAYS)


def test_the_page_s_file_of_devices_is_one(tmp_path):
    [block] = [block for block in blocks_of(PAGE) if block.language == "json"]
    (tmp_path / "devices.json").write_text(block.text, encoding="utf-8")
    assert [device.id for device in listed(tmp_path / "devices.json")] == ["left", "right"]


def test_what_the_page_says_of_status_is_in_it(machine):
    seen = json.loads(typed(machine, "gpu-lease run -- gpu-lease status --json"))
    text = PAGE.read_text(encoding="utf-8")
    section = text[text.index("## For programs") : text.index("## Windows")]
    held = seen["devices"][0]["held"]
    for name in (*seen["devices"][0], "user", "program", "lease", "since", "supervised", "waiting"):
        assert f"`{name}`" in section, name
        assert name in {**seen, **seen["devices"][0], **held}
    assert os.getuid() == 0
    assert held["user"] == "root"
