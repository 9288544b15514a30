"""A machine that hands out devices: real supervisors of root, real cgroups, and people who ask as another user."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from gpu_lease.cgroups import Cgroups, mounted
from packaging_root import ROOT

PROGRAM = ROOT / "agent" / "gpu-lease" / "gpu-lease"
PACKAGE = PROGRAM.parent / "gpu_lease"
FOUR = [
    {"id": "GPU-0000000000000a01", "kind": "gfx1030", "vendor": "amd", "nodes": ["/dev/kfd", "/dev/dri/renderD128"], "pci": "0000:03:00.0"},
    {"id": "GPU-0000000000000a02", "kind": "gfx1030", "vendor": "amd", "nodes": ["/dev/kfd", "/dev/dri/renderD129"], "pci": "0000:04:00.0"},
    {"id": "GPU-0000000000000a03", "kind": "gfx90a", "vendor": "amd", "nodes": ["/dev/kfd", "/dev/dri/renderD130"], "pci": "0000:05:00.0"},
    {
        "id": "GPU-11111111-2222-3333-4444-555555555555",
        "kind": "sm_86",
        "vendor": "nvidia",
        "nodes": ["/dev/nvidia0"],
        "pci": "0000:06:00.0",
    },
]
PYTHON = "/usr/bin/python3"  # the system's: another user may not enter that of the tests
# A user and a group whom every distribution has.
USER, GROUP = 65534, 65534
SECONDS = 20


def _heeds_signals() -> None:
    """Whoever runs the tests in the background may ignore them, and what is ignored stays so in all that is started."""
    for name in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(name, signal.SIG_DFL)


@dataclass(slots=True)
class Host:
    """One machine's devices. What it needs lies in ``folder``; its cgroups have a name of their own."""

    folder: Path
    slice: str
    serving: subprocess.Popen
    asked: list[subprocess.Popen] = field(default_factory=list)

    @property
    def gpu_lease(self) -> str:
        return str(self.folder / "gpu-lease")

    @property
    def socket(self) -> Path:
        return self.folder / "run" / "socket"

    def run_words(self, *command: str, options: tuple[str, ...] = ()) -> list[str]:
        return [self.gpu_lease, "run", "--socket", str(self.socket), *options, "--", *command]

    def starts(self, *command: str, options: tuple[str, ...] = (), user: int | None = USER, **facts) -> subprocess.Popen:
        """Let somebody ask, and not wait for it."""
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": self.folder}
        pipes["preexec_fn"] = _heeds_signals
        self.asked.append(subprocess.Popen(self.run_words(*command, options=options), **(pipes | {"user": user, "group": user} | facts)))
        return self.asked[-1]

    def runs(self, *command: str, **facts) -> subprocess.CompletedProcess[str]:
        """Let somebody ask, and wait for the end of his command."""
        asked = self.starts(*command, **facts)
        said, errors = asked.communicate(timeout=SECONDS)
        return subprocess.CompletedProcess(asked.args, asked.returncode, said, errors)

    def status(self) -> dict:
        command = [self.gpu_lease, "status", "--json", "--socket", str(self.socket)]
        return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=SECONDS).stdout)

    def held(self) -> dict[str, dict]:
        return {device["id"]: device["held"] for device in self.status()["devices"] if device["held"]}

    def supervisors(self) -> list[int]:
        """The processes of root that serve somebody."""
        children = Path(f"/proc/{self.serving.pid}/task/{self.serving.pid}/children")
        return [int(pid) for pid in children.read_text(encoding="ascii").split()]

    def cgroup(self, number: int) -> Path:
        return mounted() / f"{self.slice}.slice" / f"{self.slice}-{number}.slice"

    def has_devices(self, devices: list[dict]) -> None:
        (self.folder / "devices.json").write_text(json.dumps({"devices": devices}), encoding="utf-8")

    def until(self, is_so, what: str, seconds: float = SECONDS):
        """Wait until something is so."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := is_so():
                return found
            time.sleep(0.02)
        raise AssertionError(f"not within {seconds} s: {what}; {self.status()}")

    def until_held(self, count: int) -> dict[str, dict]:
        """Wait until the commands that hold them have begun."""
        return self.until(lambda: len(held := self.held()) == count and all(one["pid"] for one in held.values()) and held, f"{count} held")

    def until_free(self) -> None:
        self.until(lambda: not self.held(), "no device held")


def has_ended(pid: int) -> bool:
    """Whether a process has ended, waited for or not."""
    path = Path(f"/proc/{pid}/stat")
    return not path.exists() or path.read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"


@contextmanager
def host(devices: list[dict] = FOUR, *wrapped: str, activated: bool = False) -> Iterator[Host]:
    """Hand out devices until the end; kill and remove whatever is left then. ``activated``: listened for as systemd does it."""
    # Not pytest's own directory: another user may not enter that.
    with tempfile.TemporaryDirectory(prefix="gpu-lease-") as name:
        folder, slice_name = Path(name), f"gpulease{os.getpid()}x{time.monotonic_ns()}"
        folder.chmod(0o755)
        installed(folder)
        (folder / "devices.json").write_text(json.dumps({"devices": devices}), encoding="utf-8")
        (folder / "run").mkdir()
        socket, places = (
            f"{folder}/run/socket",
            ["--state", f"{folder}/run/state", "--devices", f"{folder}/devices.json", "--slice", slice_name],
        )
        words = [*wrapped, str(folder / "gpu-lease"), "serve", "--socket", socket, *places]
        if activated:
            words = ["systemd-socket-activate", "--accept", "--inetd", "--listen", socket, str(folder / "gpu-lease"), "supervise", *places]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as serving:
            machine = Host(folder, slice_name, serving)
            try:
                machine.until(lambda: machine.socket.exists() or serving.poll() is not None, "a socket")
                yield machine
            finally:
                _cleared(machine)


def installed(folder: Path) -> None:
    """Put the program where every user may read it."""
    shutil.copytree(PACKAGE, folder / "lib" / "gpu_lease", ignore=shutil.ignore_patterns("__pycache__"))
    text = PROGRAM.read_text(encoding="utf-8")
    text = text.replace("/usr/local/lib/gpu-lease", f"{folder}/lib")
    (folder / "gpu-lease").write_text(text, encoding="utf-8")
    (folder / "gpu-lease").chmod(0o755)


def _cleared(machine: Host) -> None:
    top = mounted() / f"{machine.slice}.slice"
    for process in machine.asked:
        process.kill()
    if machine.serving.poll() is None:
        machine.serving.send_signal(signal.SIGSTOP)  # or it would start another one meanwhile
        for pid in machine.supervisors():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    machine.serving.kill()
    if top.exists():
        (top / "cgroup.kill").write_text("1", encoding="ascii")
    for process in machine.asked:
        process.communicate(timeout=SECONDS)
    if top.exists():
        groups, end = Cgroups(mounted(), machine.slice), time.monotonic() + SECONDS
        while (left := groups.numbers()) and time.monotonic() < end:
            for number in left:
                groups.remove(number)
            time.sleep(0.02)
        top.rmdir()
