"""A fleet that lives: from the text of its fleet file through the real handlers to what becomes of its machines, builds and messages."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

from autoscaler_workbench.fakes.http_fakes.jenkins.jobs import Job
from autoscaler_workbench.fakes.world.ec2.instance import Instance
from autoscaler_workbench.fakes.world.jenkins.builds import Build, Kind
from autoscaler_workbench.fakes.world.jenkins.nodes import Node
from support.deployed import InMemory, deployed_in_memory

# What every fleet file must have. A text that has one of these sections itself keeps its own.
_SECTIONS = {
    "controllers": "{main: {url: 'http://main/', secret: jenkins/main}}",
    "defaults": "{boot_seconds: 60}",  # agents are connected within two minutes
}
# What every pool of machines must have.
_POOL = "launch_template: t, instance_types: [c5.xlarge]"
_BEACON = "autoscaler-beacon"

# The sections of two controllers, of the fleet's limits, and of a single pool.
BOTH = "controllers: {main: {url: 'http://main/', secret: jenkins/main}, other: {url: 'http://other/', secret: jenkins/other}}\n"


def limits(**given: object) -> str:
    named = {"max_agents": 20, "max_launches_per_hour": 50, "max_usd_per_hour": 100, "max_usd_per_month": 10_000} | given
    return f"limits: {{{', '.join(f'{name}: {value}' for name, value in named.items())}}}\n"


def one_pool(keys: str = "") -> str:
    return f"pools: {{cpu: {{$pool, executors: 1, max_agents: 4{keys and ', '}{keys}}}}}"


@dataclass(slots=True)
class Scene:
    """Handlers that are called each minute, and the world that they act on."""

    here: InMemory

    @property
    def world(self) -> Any:
        return self.here.world

    @property
    def now(self) -> float:
        return self.here.world.timeline.now

    @property
    def jenkins(self) -> Any:
        return self.here.world.controllers["main"]

    def minutes(self, count: int) -> None:
        """Let minutes pass, each with one look of every function."""
        self.here.pass_minutes(count)

    def until(self, happened: Callable[[], object], within: int) -> int:
        """Let minutes pass until this has happened; return how many."""
        for minute in range(within + 1):
            if happened():
                return minute
            if minute < within:
                self.minutes(1)
        raise AssertionError(f"not within {within} min")

    def submit(self, job: str, label: str | None, minutes: float, controller: str = "main", **facts: Any) -> Build:
        build = self.here.world.controllers[controller].submit(job, label, minutes * 60.0, **facts)
        self.world.move_to(self.now)  # a free executor takes it at once
        return build

    def define(self, job: str, label: str | None, minutes: float, *declares: str, controller: str = "main", **facts: Any) -> None:
        """Make a job that can be started with parameters."""
        declared = dict.fromkeys(declares, "")
        self.here.server.jenkins[controller].jobs.jobs[job] = Job(Kind.FREESTYLE, label, minutes * 60.0, declared, **facts)

    def start(self, job: str, controller: str = "main", **given: str) -> Build:
        return self.here.server.jenkins[controller].jobs.build(job, given or None, "somebody")

    def builds_of(self, job: str, controller: str = "main") -> list[Build]:
        return self.here.world.controllers[controller].builds_of.get(job, [])

    def order(self, action: str, **facts: Any) -> dict[str, Any]:
        """Let a person give an order, or ask."""
        return self.here.call("operate", {"action": action, "by": "ada", **facts})

    def machines(self, pool: str | None = None, state: str | None = None) -> list[Instance]:
        """Return the living machines of a pool, the oldest first."""
        alive = [one for one in self.here.world.alive() if pool in {None, one.tags["autoscaler:pool"]} and state in {None, one.state}]
        return sorted(alive, key=lambda one: one.launched_at)

    def ever(self, pool: str | None = None) -> list[Instance]:
        """Return every machine that was ever launched."""
        return [one for one in self.here.world.ec2.instances.values() if pool in {None, one.tags["autoscaler:pool"]}]

    def nodes(self, controller: str = "main") -> list[Node]:
        found = self.here.world.controllers[controller].nodes
        return [node for name, node in found.items() if not name.startswith(_BEACON)]

    def ready(self, pool: str, controller: str = "main") -> list[Node]:
        """Return the nodes of a pool that take builds."""
        return [node for node in self.nodes(controller) if node.name.startswith(f"{pool}-") and not node.offline]

    def node_of(self, machine: Instance) -> Node:
        node = self.here.world.node_of(machine)
        assert node, f"{machine.id} has no node"
        return node

    def machine_of(self, build: Build) -> Instance:
        [machine] = [one for one in self.ever() if one.tags.get("autoscaler:node") == build.node]
        return machine

    def lose(self, build: Build) -> None:
        """Let EC2 lose the machine of a build."""
        self.here.world.ec2.end(self.machine_of(build))

    def steps(self, kind: str) -> list[tuple[str, str]]:
        """Return the reason and the detail of each step of a kind that was done."""
        logged = [facts for event, facts in self.here.logged if event == "step" and facts["step"] == kind]
        return [(str(facts["reason"]), str(facts["detail"])) for facts in logged if facts["outcome"] == "done"]

    def held(self, reason: str) -> list[str]:
        return [str(facts["detail"]) for event, facts in self.here.logged if event == "held" and facts["reason"] == reason]

    def deploy(self, text: str) -> None:
        """Deploy another fleet file: the handlers start cold with it."""
        Path(os.environ["FLEET_CONFIG"]).write_text(_file(text), encoding="utf-8")
        self.here.start_cold()

    def subjects(self) -> list[str]:
        """Return the subjects of the messages that people were sent."""
        return [subject.removeprefix(f"[{self.here.fleet.name}] ") for subject, _ in self.here.told()]

    def metric(self, name: str, **dimensions: str) -> list[float]:
        """Return the values of a metric of the fleet, or of a part of it."""
        wanted = {"Fleet": self.here.fleet.name, **dimensions}
        return [
            value for _, datum in self.here.metrics if datum.name == name and dict(datum.dimensions) == wanted for value in datum.values
        ]


@contextmanager
def scene(text: str, environment: dict[str, str] | None = None) -> Iterator[Scene]:
    """Run a fleet whose file has this text. ``$pool`` stands for what every pool must have."""
    with deployed_in_memory(_file(text), environment) as here:
        yield Scene(here)


def _file(text: str) -> str:
    head = limits() if "limits: {" not in text else ""
    head += "".join(f"{name}: {value}\n" for name, value in _SECTIONS.items() if f"\n{name}:" not in f"\n{text}")
    return f"fleet: f\n{head}{Template(text).substitute(pool=_POOL)}\n"
