"""The machines behind the emulated instances: for each running one the product's agent service as a process.

A stop or a termination ends its processes, a start begins new ones for the same instance id. EC2's events are sent as well.
"""

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from packaging_root import ROOT
from rehearsal.aws import Account
from rehearsal.metadata import metadata
from rehearsal.plan import REGION

_BOOT_SECONDS = 1.0  # from `running` until the service begins
_LOOK_SECONDS = 0.5
# Its agent's goodbye to the simulated Jenkins must not be cut off on a busy machine.
_SHUTDOWN_SECONDS = 120.0


@dataclass(slots=True)
class Machines:
    """``services``: the processes by instance; ``lives``: how often each instance was switched on."""

    account: Account
    java: str
    register_url: str
    agents: Path  # the tree whose agent service new machines get; a machine keeps its own
    services: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    lives: dict[str, int] = field(default_factory=dict)
    stopped: set[str] = field(default_factory=set)  # instances that have ever been stopped
    problems: list[str] = field(default_factory=list)
    _trees: dict[str, Path] = field(default_factory=dict)
    _states: dict[str, str] = field(default_factory=dict)
    _due: dict[str, float] = field(default_factory=dict)
    _ended: threading.Event = field(default_factory=threading.Event)

    def log(self, instance_id: str) -> str:
        """What the service of an instance has printed."""
        return (self._home(instance_id) / "log").read_text(encoding="utf-8", errors="replace")

    def run(self) -> None:
        """Follow the instances until the end. What goes wrong is kept for the report."""
        while not self._ended.wait(_LOOK_SECONDS):
            try:
                self._look()
            except Exception as error:  # noqa: BLE001 - the story goes on, and the report says so
                self.problems.append(f"{type(error).__name__}: {error}")

    def end(self, follower: threading.Thread) -> None:
        """Follow no more, and then end all services: ``follower`` would begin them again."""
        self._ended.set()
        follower.join(2 * _SHUTDOWN_SECONDS)
        for instance_id in list(self.services):
            self._switch_off(instance_id)

    def _look(self) -> None:
        instances = self.account.instances("pending", "running", "stopping", "stopped", "shutting-down", "terminated")
        for instance_id, instance in instances.items():
            state = instance["State"]["Name"]
            if state != self._states.get(instance_id):
                self._states[instance_id] = state
                self.stopped |= {instance_id} if state == "stopped" else set()
                self._due[instance_id] = time.monotonic() + _BOOT_SECONDS
                self.account.announce("aws.ec2", "EC2 Instance State-change Notification", {"instance-id": instance_id, "state": state})
            if state != "running" and instance_id in self.services:
                self._switch_off(instance_id)
            has_powered_off = (self._home(instance_id) / "off").exists()
            if state == "running" and has_powered_off:  # the launch templates say: then terminate
                self.account.ec2.terminate_instances(InstanceIds=[instance_id])
            elif state == "running" and instance_id not in self.services and time.monotonic() >= self._due[instance_id]:
                self._switch_on(instance_id)

    def _switch_on(self, instance_id: str) -> None:
        home = self._home(instance_id)
        home.mkdir(parents=True, exist_ok=True)
        self.lives[instance_id] = self.lives.get(instance_id, 0) + 1
        environment = {
            "PATH": os.environ["PATH"],
            "REGISTER_URL": self.register_url,
            "REGION": REGION,
            "IMDS": f"http://127.0.0.1:{self.account.plan.metadata_port}/{instance_id}",
            "JAVA": self.java,
            "POWER_OFF": f"touch {home}/off",
            "RUN_DIRECTORY": str(home / "run"),
            "WORK_DIRECTORY": str(home / "work"),
            "CLOUD_INIT": str(home / "cloud-init"),
            "READY": str(home / "ready"),
            "BOOT_TIMEOUT_SECONDS": "100000",  # counted from this machine's own boot
            "FIRST_PAUSE_SECONDS": "1",
        }
        with (home / "log").open("ab") as log:
            service = self._trees.setdefault(instance_id, self.agents) / "agent" / "linux" / "autoscaler-agent"
            self.services[instance_id] = subprocess.Popen(
                [service], env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def _switch_off(self, instance_id: str) -> None:
        """End the service and its Java as a shutdown does: they may say goodbye."""
        service = self.services.pop(instance_id)
        processes = [*_children(service.pid), service.pid]
        for process in processes:
            _signal(process, signal.SIGTERM)
        try:
            service.wait(_SHUTDOWN_SECONDS)
        except subprocess.TimeoutExpired:
            for process in processes:
                _signal(process, signal.SIGKILL)
            service.wait()

    def _home(self, instance_id: str) -> Path:
        return self.account.plan.folder / "machines" / instance_id


def _signal(process: int, number: int) -> None:
    try:
        os.kill(process, number)
    except ProcessLookupError:
        return


def _children(parent: int) -> list[int]:
    """All descendants of a process, the youngest first."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    children = [process for process, its_parent in parents.items() if its_parent == parent]
    return [descendant for child in children for descendant in (*_children(child), child)]


@contextmanager
def machines(account: Account, java: str, agents: Path = ROOT) -> Iterator[Machines]:
    """Machines for the fleet's instances, from now on."""
    shutil.rmtree(account.plan.folder / "machines", ignore_errors=True)
    host = account.outputs()["RegisterAgentUrl"].split("/")[2]
    url = f"{account.plan.aws_url}/_aws/lambda-url/{host.split('.')[0]}/"
    made = Machines(account, java, url, agents)
    with metadata(account):
        thread = threading.Thread(target=made.run, daemon=True)
        thread.start()
        try:
            yield made
        finally:
            made.end(thread)
