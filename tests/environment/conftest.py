"""What is made once for tests that need more than Python packages, or take long."""

import logging
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests
from moto.server import ThreadedMotoServer

from autoscaler_workbench.simulate.fleets import EXAMPLE_FLEET
from packaging_root import ROOT
from support.caches import Cloud, clouded
from support.debian import fresh_debian
from support.lease_host import Host, host

UV = str(Path(sys.executable).parent / "uv")


def run(*command: str, **variables: str) -> str:
    """Run a command of the project; its output is in the error when it fails."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "SAM_CLI_TELEMETRY": "0", "AWS_DEFAULT_REGION": "us-west-2", **variables}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


@pytest.fixture(scope="session")
def sam() -> str:
    found = shutil.which("sam", path=str(ROOT / ".venv-sam" / "bin"))
    assert found, "run `make test-all`, which installs the SAM command line"
    return found


@dataclass(frozen=True, slots=True)
class Built:
    """One build for this machine, and an interpreter that has what Lambda has: boto3 and the runtime client.

    ``said``: what ``sam build`` printed.
    """

    core: Path
    fleet: Path
    functions: Path
    python: Path
    said: str


@pytest.fixture(scope="session")
def built(sam, tmp_path_factory) -> Built:
    folder = tmp_path_factory.mktemp("build")
    said = run(
        *(sam, "build", "--build-dir", str(folder / "arm64"), "--cache-dir", str(folder / "cache")),
        AUTOSCALER_PYTHON=sys.executable,
        AUTOSCALER_FLEET=str(EXAMPLE_FLEET),
    )
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    machine = f"{platform.machine()}-manylinux_2_28"
    # Lambda's arm64 tree cannot be imported here: the same Makefile builds once more for this machine.
    run(
        *("make", "-C", "layers/core", "build-CoreLayer"),
        ARTIFACTS_DIR=str(folder / "core"),
        LAMBDA_PYTHON=version,
        LAMBDA_PLATFORM=machine,
        UV=UV,
    )
    run(UV, "venv", "--quiet", "--python", sys.executable, str(folder / "bare"))
    run(UV, "pip", "install", "--quiet", "--python", str(folder / "bare" / "bin" / "python"), "boto3", "awslambdaric")
    bare = folder / "bare" / "bin" / "python"
    return Built(folder / "core" / "python", folder / "arm64" / "FleetLayer", folder / "arm64", bare, said)


@pytest.fixture(scope="module")
def local_aws() -> Iterator[str]:
    """A local AWS over HTTP with nothing in it: its address."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    requests.post(f"http://{host}:{port}/moto-api/reset", timeout=60).raise_for_status()  # all servers of a process share what there is
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="module")
def debian(tmp_path_factory) -> Iterator[Path]:
    """A fresh Debian for one module's tests."""
    yield from fresh_debian(tmp_path_factory.mktemp("debian") / "root")


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    """STS, ECR and the metadata service."""
    # Not pytest's own directory: the build user may not enter that, nor what several workers have below it.
    with tempfile.TemporaryDirectory(prefix="autoscaler-caches-") as name:
        yield from clouded(Path(name))


@pytest.fixture
def machine() -> Iterator[Host]:
    """A machine with four devices that gpu-lease hands out."""
    with host() as made:
        yield made
