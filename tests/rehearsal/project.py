"""Source trees of the project, and what `make build` makes of them: today's, and the released one that is upgraded from."""

import shutil
import subprocess
import tarfile
from io import BytesIO
from pathlib import Path

from packaging_root import ROOT
from rehearsal.plan import Plan
from rehearsal.releases import Release
from support.clones import clone_of_the_work_tree


def clone(plan: Plan, name: str) -> Path:
    """A clone of the work tree as it is: nothing that a build writes may disturb the user's own."""
    tree = plan.folder / name
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir()
    return clone_of_the_work_tree(tree)


def tree_of(plan: Plan, release: Release) -> Path:
    """The source of a released version. It is kept for the next rehearsal."""
    tree = plan.folder / f"{release.version}-{release.commit[:8]}"
    if not (tree / "template.yaml").exists():
        command = ["git", "-C", ROOT, "archive", release.commit]
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode:
            raise RuntimeError(
                f"the commit that released {release.version} ({release.commit[:8]}) is not here; fetch the whole history of the project"
            )
        with tarfile.open(fileobj=BytesIO(done.stdout)) as archive:
            archive.extractall(tree, filter="data")
    return tree


def build(plan: Plan, tree: Path, fleet: str) -> bool:
    """Run `make build` for the emulator's Python on this machine. Return False if this very build was there already."""
    version, machine = _target(plan)
    mark = tree / ".built"
    wanted = f"{version} {machine}\n{fleet}"
    if mark.exists() and mark.read_text(encoding="utf-8") == wanted:
        return False
    mark.unlink(missing_ok=True)
    file = tree / "fleet.yaml"
    file.write_text(fleet, encoding="utf-8")
    environments = [f"{variable}={ROOT / place}" for variable, place in (("VENV", ".venv"), ("SAM_VENV", ".venv-sam"))]
    # They are there, and up to date: `make rehearse` needs them.
    old = [word for mark in (".venv/.demo", ".venv/.ready", ".venv-sam/.ready") for word in ("--old-file", str(ROOT / mark))]
    variables = plan.environment(tree, LAMBDA_PYTHON=version, LAMBDA_PLATFORM=f"{machine}-manylinux_2_28")
    run(plan, f"build-{tree.name}", ["make", "build", f"FLEET={file}", *environments, *old], tree, variables)
    mark.write_text(wanted, encoding="utf-8")
    return True


def run(plan: Plan, name: str, command: list[str], tree: Path, environment: dict[str, str]) -> str:
    """Run a command in a source tree; its output is in a log. `RuntimeError` with the log's end if it fails."""
    done = subprocess.run(
        command, cwd=tree, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=1800
    )
    with (plan.logs / f"{name}.log").open("a", encoding="utf-8") as log:
        log.write(done.stdout)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: status {done.returncode}\n{done.stdout[-3000:]}")
    return done.stdout


def _target(plan: Plan) -> tuple[str, str]:
    """The Python and the processor that functions run on: Lambda's are 3.13 and arm64, the emulator uses its own."""
    code = "import platform, sys; print('%d.%d' % sys.version_info[:2], platform.machine())"
    version, machine = subprocess.run([plan.emulator_python, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    return version, machine
