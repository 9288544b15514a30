"""What is packed of gpu-lease: its sources as they are, which any Python from 3.9 on takes."""

import ast
import stat

import pytest

from autoscaler_workbench.maintenance import gpu_lease_archive
from autoscaler_workbench.maintenance.gpu_lease_archive import FOLDER, packed, sources, unpacked
from support.debian import run

MODULES = sorted(FOLDER.glob("gpu_lease/*.py"))
# What comes with every Python; nothing else may be imported.
STANDARD = {"argparse", "collections", "contextlib", "dataclasses", "errno", "fcntl", "json", "os", "pathlib", "pwd", "re", "resource"}
STANDARD |= {"select", "shutil", "signal", "socket", "struct", "subprocess", "sys", "time", "typing", "urllib", "__future__"}


def test_the_images_get_the_sources_as_they_are():
    assert gpu_lease_archive.up_to_date(), "run `make components`"


def test_what_is_packed_is_what_is_unpacked():
    files = sources()
    assert unpacked(packed(files)) == files
    assert {name for name, (mode, _) in files.items() if mode & stat.S_IXUSR} == {"gpu-lease", "install"}
    assert {f"gpu_lease/{path.name}" for path in MODULES} <= set(files)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_module_is_python_3_9_and_imports_nothing_from_elsewhere(path):
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))
    absolute = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level]
    plain = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    assert {name.split(".")[0] for name in (*absolute, *plain)} <= STANDARD


@pytest.mark.needs("shellcheck")
def test_the_installer_passes_shellcheck():
    run("shellcheck", str(FOLDER / "install"))


def test_the_installer_puts_everything_below_a_folder(tmp_path):
    run("env", "PATH=/usr/bin:/bin", f"ROOT={tmp_path}", str(FOLDER / "install"))
    there = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    modules = {f"usr/local/lib/gpu-lease/gpu_lease/{path.name}" for path in MODULES}
    assert there == modules | {
        "usr/local/bin/gpu-lease",
        "etc/systemd/system/gpu-lease.socket",
        "etc/systemd/system/gpu-lease@.service",
    }
