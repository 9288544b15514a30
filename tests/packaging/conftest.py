"""What is built once for all packaging tests."""

import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from autoscaler_workbench.simulate.fleets import EXAMPLE_FLEET

ROOT = Path(__file__).parents[2]
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
    assert found, "run the tests with `make test`: it installs the SAM command line beside them"
    return found


@dataclass(frozen=True, slots=True)
class Built:
    """One build for this machine, and an interpreter that holds boto3 and nothing else."""

    core: Path
    fleet: Path
    functions: Path
    python: Path


@pytest.fixture(scope="session")
def built(sam, tmp_path_factory) -> Built:
    folder = tmp_path_factory.mktemp("build")
    run(
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
    run(UV, "pip", "install", "--quiet", "--python", str(folder / "bare" / "bin" / "python"), "boto3")
    return Built(folder / "core" / "python", folder / "arm64" / "FleetLayer", folder / "arm64", folder / "bare" / "bin" / "python")
