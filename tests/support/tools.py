"""What some tests need beyond Python packages: root, a browser, Debian's tools, Node. This table is the only list of them.

``python -m support.tools`` names what is missing and the command that installs it. With ``--install`` it installs the packages, on
Debian as root. It needs no package of ours, since it runs before they are installed.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gpu_lease.cgroups import Cgroups, mounted
from gpu_lease.errors import NotPossibleError

# AWS' emulator, in a virtual environment of its own.
MINISTACK = Path(__file__).parents[2] / ".venv-ministack" / "bin" / "ministack"
# Where programs were looked for before `make test` took all but the basic ones away.
_PATH = "PATH_BEFORE_BARE"
# What `make test` may start: a shell with the usual commands, git and make. Python is started by its own path.
_BASIC = """
    sh bash env ls cat cp mv rm mkdir rmdir ln touch date sleep sed awk grep egrep tr cut head tail sort uniq wc find xargs dirname basename
    mktemp chmod chown id uname nproc tee diff cmp tar gzip gunzip printf echo test true false timeout setsid kill ps stty tput expr seq
    readlink realpath sha256sum md5sum od getent hostname which git make python3
""".split()


@dataclass(frozen=True, slots=True)
class Tool:
    """``tries``: what its tests try. ``packages``: Debian's. ``otherwise``: how to get it if no package brings it.

    ``optional``: neither a package nor root can bring it, and CI goes on without it.
    """

    tries: str
    programs: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    otherwise: str = ""
    is_there: Callable[[], bool] | None = None
    optional: bool = False

    @property
    def present(self) -> bool:
        return self.is_there() if self.is_there else all(map(program, self.programs))

    @property
    def remedy(self) -> str:
        return self.otherwise or f"apt-get install {' '.join(self.packages)}"


def program(name: str) -> str | None:
    """Where a program is, for tests that may use more than the basic ones."""
    return shutil.which(name, path=os.environ.get(_PATH, os.environ.get("PATH", os.defpath)))


@cache
def python_of(version: str) -> str | None:
    """Return a Python of this version that has ssl: on the path, or one of pyenv's."""
    this = [sys.executable] if sys.version_info[:2] == tuple(map(int, version.split("."))) else []
    beside = sorted(Path.home().glob(f".pyenv/versions/{version}*/bin/python{version}"))
    for python in filter(None, [program(f"python{version}"), *this, *map(str, beside)]):
        if subprocess.run([python, "-c", "import ssl"], capture_output=True, check=False).returncode == 0:
            return python
    return None


def _is_root() -> bool:
    return os.geteuid() == 0


@cache
def _makes_cgroups() -> bool:
    """Tell whether root may make cgroups here. In a container not even root may; who is not root lacks root first."""
    if not _is_root():
        return True
    name = f"leaseprobe{os.getpid()}"
    try:
        Cgroups(mounted(), name)
        (mounted() / f"{name}.slice").rmdir()
    except (NotPossibleError, OSError):
        return False
    return True


def _python(version: str) -> Tool:
    return Tool(
        f"the wheels in Python {version}",
        otherwise=f"install Python {version}",
        is_there=lambda: python_of(version) is not None,
        optional=True,
    )


TOOLS = {
    "root": Tool("builds as another user, installers, leases of cards", otherwise="sudo make test-all", is_there=_is_root),
    "chromium": Tool("reports, dashboards and the live page in a browser", ("chromium", "chromedriver"), ("chromium", "chromium-driver")),
    "debootstrap": Tool("the agent's installer and image components in a fresh Debian", ("debootstrap",), ("debootstrap",)),
    "node": Tool("IAM roles, by a policy evaluator", ("node", "npm"), ("nodejs", "npm")),
    "docker-registry": Tool(
        "what a cache of container images saves", ("docker-registry", "skopeo"), ("docker-registry", "skopeo")
    ),
    "shellcheck": Tool("the style of shell scripts", ("shellcheck",), ("shellcheck",)),
    "curl": Tool("the keys of shared caches", ("curl",), ("curl", "ca-certificates")),
    "iproute2": Tool("the rules that keep builds from the instance metadata", ("ip",), ("iproute2",)),
    "systemd": Tool("leases of cards by socket activation", ("systemd-socket-activate",), ("systemd",)),
    "cgroups": Tool(
        "leases of cards", otherwise="run it on a machine where root may make cgroups", is_there=_makes_cgroups, optional=True
    ),
    "ministack": Tool("the stores of the state on a second DynamoDB", otherwise="make everything", is_there=MINISTACK.exists),
    **{f"python{version}": _python(version) for version in ("3.11", "3.12", "3.13")},
}  # fmt: skip


def missing() -> dict[str, Tool]:
    return {name: tool for name, tool in TOOLS.items() if not tool.present}


def make_path_bare(folder: Path) -> None:
    """Leave this process and its children only the basic programs, so that a test cannot use another one unnoticed."""
    if _PATH not in os.environ:
        link_basic_programs(folder)
        os.environ |= {_PATH: os.environ.get("PATH", os.defpath), "PATH": str(folder)}


def link_basic_programs(folder: Path) -> None:
    for name in _BASIC:
        if place := program(name):
            (folder / name).symlink_to(place)


def main(words: list[str]) -> int:
    """Say what is missing, or install it; fail if something that CI needs is missing in the end."""
    lacking = {name: tool for name, tool in missing().items() if not tool.optional}
    packages = [package for tool in lacking.values() for package in tool.packages]
    if packages and "--install" in words and _is_root() and shutil.which("apt-get"):
        _install(packages)
        lacking = {name: tool for name, tool in missing().items() if not tool.optional}
        packages = [package for tool in lacking.values() for package in tool.packages]
    if "root" in lacking:
        print(f"run it as root, who also installs what is missing on Debian: {lacking['root'].remedy}", file=sys.stderr)  # noqa: T201
    if packages:
        print(f"not here: {', '.join(name for name in lacking if name != 'root')}", file=sys.stderr)  # noqa: T201
        print(f"on Debian: apt-get install {' '.join(packages)}", file=sys.stderr)  # noqa: T201
    if lacking:
        print("without them `make test` runs every test that Python packages alone can run", file=sys.stderr)  # noqa: T201
    return 1 if lacking else 0


def _install(packages: list[str]) -> None:
    print(f"installing {' '.join(packages)} ...", flush=True)  # noqa: T201
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *packages]):
        subprocess.run(["apt-get", *command], env=quiet, stdout=subprocess.DEVNULL, check=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
