"""The layer's bytecode, which only Lambda's own version of Python can make: where that is found, and what is said if there is none."""

import shutil
import subprocess
import sys

import pytest

from packaging_root import ROOT

THIS = f"{sys.version_info.major}.{sys.version_info.minor}"
UV_WITHOUT_A_PYTHON = "exit 1"
UV_THAT_DOWNLOADS = f'[ "$1" = run ] || exit 1; while [ "$1" != python ]; do shift; done; shift; exec {sys.executable} "$@"'


def program(path, script):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def layer(tmp_path):
    (tmp_path / "layer").mkdir()
    (tmp_path / "layer" / "module.py").write_text("", encoding="utf-8")
    return tmp_path / "layer"


def compiled(layer, uv, *, version=THIS, path="/usr/bin:/bin", **variables):
    folder = layer.parent
    words = ["sh", ROOT / "layers" / "core" / "bytecode.sh", layer, version, program(folder / "uv", uv)]
    environment = {"PATH": path, "HOME": str(folder), **variables}
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=False)


def bytecode(layer):
    return [path.name for path in layer.rglob("*.pyc")]


def test_a_shim_of_pyenv_for_a_version_that_is_not_chosen_does_not_hide_that_version(layer):
    shims = program(layer.parent / "shims" / f"python{THIS}", "exit 127").parent
    program(layer.parent / ".pyenv" / "versions" / f"{THIS}.1" / "bin" / f"python{THIS}", f'exec {sys.executable} "$@"')
    done = compiled(layer, UV_WITHOUT_A_PYTHON, path=f"{shims}:/usr/bin:/bin")
    assert (done.returncode, done.stderr) == (0, "")
    assert bytecode(layer) == [f"module.cpython-{THIS.replace('.', '')}.pyc"]


def test_if_no_python_is_installed_uv_downloads_it(layer):
    shims = program(layer.parent / "shims" / f"python{THIS}", "exit 127").parent
    done = compiled(layer, UV_THAT_DOWNLOADS, path=f"{shims}:/usr/bin:/bin")
    assert (done.returncode, done.stderr) == (0, "")
    assert bytecode(layer) == [f"module.cpython-{THIS.replace('.', '')}.pyc"]


def test_bytecode_of_another_version_of_python_is_not_made(layer):
    done = compiled(layer, UV_THAT_DOWNLOADS, version="3.99")
    assert bytecode(layer) == []
    assert done.stderr == "no Python 3.99 is installed, and none could be downloaded: the layer has no bytecode\n"


@pytest.mark.parametrize(("release", "status"), [("", 0), ("0", 0), ("1", 1)])
def test_a_layer_without_bytecode_is_built_unless_it_is_a_release(layer, release, status):
    assert compiled(layer, UV_WITHOUT_A_PYTHON, version="3.99", RELEASE=release).returncode == status


def make_build(folder, *, bytecode):
    """Run the commands of ``make build`` in a folder of its own, with SAM as a program that does nothing."""
    program(folder / ".venv" / "bin" / "python", "exit 0")
    package = folder / ".aws-sam" / "build" / "CoreLayer" / "python" / "autoscaler"
    (package / "__pycache__" if bytecode else package).mkdir(parents=True)
    (folder / "fleet.yaml").write_text("", encoding="utf-8")
    done_before = ["-o", ".venv/.demo", "-o", ".venv-sam/.ready"]
    command = [shutil.which("make"), "-f", ROOT / "Makefile", "-C", folder, *done_before, "build", "SAM=true"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stderr.splitlines()


def test_the_last_line_of_make_build_says_if_there_is_no_bytecode(tmp_path):
    [line] = make_build(tmp_path, bytecode=False)
    assert line.startswith("built without bytecode: the imports of each cold start take twice as long; install Python 3.13")


def test_with_bytecode_make_build_ends_without_a_word(tmp_path):
    assert make_build(tmp_path, bytecode=True) == []
