"""A live controller, used politely: everything under one name, few things at a time, and all of it removed whatever happens.

Jobs go into a folder of their own, nodes carry the same prefix, agents are processes of this machine with agent.jar from the controller.
Needs an account that may, beyond what the autoscaler needs, create, build, cancel and delete jobs (Job/Create, Build, Cancel, Delete).
"""

import re
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jenkins

from autoscaler.adapters.jenkins.controller import JenkinsController
from autoscaler.adapters.jenkins.session import Answer, JenkinsSession, NotThereError
from autoscaler.domain.facts.fleet import NodeSpec
from autoscaler.domain.facts.snapshot import ControllerView
from autoscaler.errors import AutoscalerError
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from support import live_jobs

PREFIX = "autoscaler-live-"
_MOST_NODES, _MOST_JOBS = 8, 8
_SESSION_SECONDS = 3600.0
_LEFTOVER_SECONDS = 3600.0


class LiveSession(JenkinsSession):
    """The autoscaler's own session, and what it takes to make jobs and agents."""

    def create_item(self, path: str, name: str, config: str) -> Answer:
        return self.post(path, {"name": name}, config.encode(), with_text=True)

    def fetch(self, path: str) -> bytes:
        return self.get(path).body


@dataclass(slots=True)
class LiveJenkins:
    """One controller and what was made there. ``build_seconds``: how long a build of the tests may take to be worth waiting for.

    ``now``, ``pass_time``: the controller's time, which the stand-in lets pass faster than the wall clock. ``restart``: None if the tests
    may not restart it.
    """

    url: str
    user: str
    token: str
    java: str = "java"
    build_seconds: float = 20.0
    poll_seconds: float = 1.0
    now: Callable[[], float] = time.time
    pass_time: Callable[[float], None] = time.sleep
    restart: Callable[[], None] | None = None
    is_stand_in: bool = False
    prefix: str = field(default_factory=lambda: f"{PREFIX}{int(time.time())}-{uuid.uuid4().hex[:4]}")
    session: LiveSession = field(init=False)
    controller: JenkinsController = field(init=False)
    _nodes: list[str] = field(default_factory=list)
    _jobs: list[str] = field(default_factory=list)
    _agents: dict[str, subprocess.Popen] = field(default_factory=dict)
    _directories: dict[str, Path] = field(default_factory=dict)  # of agents, by node
    _ends_at: float = 0.0

    def __post_init__(self):
        self.session = LiveSession(self.url.rstrip("/") + "/", self.user, self.token, time.monotonic)
        self.controller = JenkinsController("main", self.session.server, lambda: self.session, time.monotonic)
        self._ends_at = time.monotonic() + _SESSION_SECONDS

    # Making

    def open(self) -> None:
        """Say in one line what is missing, remove what a run that was cut off left, and make the folder."""
        view = self.controller.look()
        assert view.problem is None, f"{self.url}: {view.problem}"
        self._remove_leftovers(view)
        self.session.create_item("createItem", self.prefix, jenkins.EMPTY_FOLDER_XML)

    def add_node(self, name: str, *labels: str, executors: int = 1) -> str:
        spec = NodeSpec(
            name=name,
            labels=labels,
            executors=executors,
            exclusive=True,
            remote_dir="live",
            description="of a live test",
        )
        self.own_node(name)
        self.controller.create_node(spec)
        return name

    def own_node(self, name: str) -> None:
        """Count a node that somebody else is about to make, so that it is removed in the end."""
        assert self.prefix in name, f"{name} must carry {self.prefix}"
        self._nodes.append(name)
        assert len(self._nodes) <= _MOST_NODES, "polite tests make few nodes at a time"

    def start_agent(self, name: str) -> None:
        """Connect a node by an agent on this machine, and wait until it is online. One that comes back finds its steps in its directory."""
        if name not in self._directories:
            self._directories[name] = Path(tempfile.mkdtemp(prefix="autoscaler-live-agent-"))
        directory = self._directories[name]
        java = shutil.which(self.java)
        assert java, f"{self.java}: not found; a live run starts an agent on this machine, which needs Java (17 or newer)"
        (directory / "agent.jar").write_bytes(self.session.fetch("jnlpJars/agent.jar"))
        secret = directory / "secret"
        secret.touch(mode=0o600)
        secret.write_text(self._secret_of(name), encoding="utf-8")
        command = [java, "-jar", str(directory / "agent.jar"), "-url", self.session.server, "-name", name, "-secret", f"@{secret}"]
        with (directory / "log").open("wb") as log:
            self._agents[name] = subprocess.Popen(
                [*command, "-webSocket", "-workDir", str(directory / "work")], stdout=log, stderr=subprocess.STDOUT, cwd=directory
            )
        self.until(lambda: not self.node(name).offline, f"{name} is online", hint=lambda: (directory / "log").read_text()[-500:])

    def define(
        self,
        job: str,
        label: str,
        seconds: float,
        kind: Kind = Kind.FREESTYLE,
        declares: tuple[str, ...] = (),
        ended_by: Path | None = None,
    ) -> str:
        """Make a job in the folder, with string parameters and one password for each name with that word; return its path.

        One whose label is ``params.NAME`` runs where this parameter says: in a freestyle job it is one of the plugin NodeLabel.
        ``ended_by``: a file on this machine whose appearance ends a freestyle build well before its time is over.
        """
        return self._create(job, live_jobs.config(kind, label, seconds, declares, ended_by))

    def define_matrix(self, job: str, label: str, seconds: float, values: tuple[str, ...], declares: tuple[str, ...] = ()) -> str:
        """Make a matrix in the folder, with one configuration for each value of its axis ``os``, all on one label; return its path."""
        return self._create(job, live_jobs.matrix_config(label, seconds, values, declares))

    def _create(self, job: str, config: str) -> str:
        self._jobs.append(job)
        assert len(self._jobs) <= _MOST_JOBS, "polite tests make few jobs at a time"
        self.session.create_item(f"job/{self.prefix}/createItem", job, config)
        return self._job_path(job)

    def submit(self, job: str, label: str, seconds: float, kind: Kind = Kind.FREESTYLE) -> str:
        """Make a job in the folder and queue a build of it; return its full name."""
        self.session.post(f"{self.define(job, label, seconds, kind)}/build", {"delay": "0sec"})
        return f"{self.prefix}/{job}"

    def kill_agent(self, name: str) -> None:
        """End the agent of a node as a lost machine does: it does not come back."""
        agent = self._agents.pop(name)
        agent.terminate()
        agent.wait(timeout=10)
        self.until(lambda: self.node(name).offline, f"{name} is offline")

    # Looking

    def kinds_of_jobs(self) -> set[str]:
        """The classes of the jobs that may be made in the folder: of a plugin that is not installed there is none."""
        shown = self.session.get(f"job/{self.prefix}/itemCategories?depth=3").json()
        return {str(item["class"]) for category in shown["categories"] for item in category["items"]}

    def look(self) -> ControllerView:
        view = self.controller.look()
        assert view.problem is None, view.problem
        return view

    def node(self, name: str) -> Any:
        node = self.controller.node(name)
        assert node is not None, f"node {name} is not there"
        return node

    def console(self, run: str) -> str:
        """What a run has printed."""
        return self.session.fetch(f"{run}/consoleText").decode(errors="replace")

    def until_sh_runs(self, run: str) -> None:
        """Wait until the `sh` of a pipeline has begun on its agent. If the agent dies before, Jenkins ends the pipeline at once."""
        self.until(lambda: live_jobs.BEGUN in self.console(run), f"sh has begun: {run}", seconds=300.0)

    def result(self, job: str) -> str | None:
        """How the last build of a job ended; None while it runs or waits."""
        shown = self.session.get(f"{self._job_path(job)}/api/json", "lastBuild[result,building]").json()
        last = shown.get("lastBuild") or {}
        return None if last.get("building") else last.get("result")

    def until(
        self, check: Callable[[], bool], what: str, *, seconds: float = 90.0, each: float | None = None, hint: Callable[[], str] = str
    ) -> None:
        """Wait for something; ``each``: how many seconds lie between two looks, where it takes long."""
        deadline = min(time.monotonic() + seconds, self._ends_at)
        while not check():
            assert time.monotonic() < deadline, f"not within {seconds:g} s: {what} {hint()}"
            self.pass_time(each or self.poll_seconds)

    # Removing

    def clean(self) -> None:
        """Remove what one test made: builds, jobs, agents, nodes; the folder stays for the next."""
        self._cancel_queued()
        for job in self._jobs:
            with suppress(NotThereError):
                self._stop_build(job)
                self.session.post(f"{self._job_path(job)}/doDelete")
        self._stop_agents()
        for name in self._nodes:
            self.controller.delete_node(name)
        self._jobs.clear()
        self._nodes.clear()

    def close(self) -> None:
        """Remove everything, trying each part though another fails; what could not be removed is named in the error."""
        failed = []
        for part in (self.clean, self._stop_agents, lambda: self._delete_folder(self.prefix), self._sweep_own_nodes):
            try:
                part()
            except (AutoscalerError, OSError) as error:
                failed.append(f"{type(error).__name__}: {error}")
        assert not failed, f"remove what begins with {self.prefix} on {self.url} by hand: {failed}"

    def _stop_build(self, job: str) -> None:
        """Stop what runs before its job is deleted: deleting would wait for it longer than an answer may take."""
        last = self.session.get(f"{self._job_path(job)}/api/json", "lastBuild[number,building]").json().get("lastBuild") or {}
        if last.get("building"):
            self.session.post(f"{self._job_path(job)}/{last['number']}/stop")
            self.until(lambda: self.result(job) is not None, f"the build of {job} has stopped")

    def _stop_agents(self) -> None:
        for agent in self._agents.values():
            agent.terminate()
        for agent in self._agents.values():
            try:
                agent.wait(timeout=10)
            except subprocess.TimeoutExpired:
                agent.kill()
                agent.wait()
        self._agents.clear()
        while self._directories:
            shutil.rmtree(self._directories.popitem()[1], ignore_errors=True)

    def _cancel_queued(self) -> None:
        queue = self.session.get("queue/api/json", "items[id,task[url]]").json()
        for item in queue["items"]:
            if f"job/{self.prefix}/" in (item.get("task") or {}).get("url", ""):
                with suppress(NotThereError):
                    self.session.post("queue/cancelItem", {"id": str(item["id"])})

    def _delete_folder(self, name: str) -> None:
        with suppress(NotThereError):
            self.session.post(f"job/{quote(name)}/doDelete")

    def _sweep_own_nodes(self) -> None:
        for node in self.controller.look().nodes:
            if self.prefix in node.name:
                self.controller.delete_node(node.name)

    def _remove_leftovers(self, view: ControllerView) -> None:
        """A run that was killed outright could not clean up; the next one does, once it surely runs no more."""
        jobs = self.session.get("api/json", "jobs[name]").json().get("jobs", [])
        for name in [job["name"] for job in jobs if self._is_leftover(job["name"])]:
            self._delete_folder(name)
        for node in view.nodes:
            if self._is_leftover(node.name):
                self.controller.delete_node(node.name)

    @staticmethod
    def _is_leftover(name: str) -> bool:
        found = re.search(rf"{PREFIX}(\d+)-[0-9a-f]{{4}}", name)
        return found is not None and time.time() - int(found[1]) > _LEFTOVER_SECONDS

    def _secret_of(self, name: str) -> str:
        found = re.search(r"<argument>([0-9a-f]{64})</argument>", self.session.fetch(f"computer/{quote(name)}/jenkins-agent.jnlp").decode())
        assert found, "jenkins-agent.jnlp holds no secret: the account needs Agent/Connect"
        return found[1]

    def _job_path(self, job: str) -> str:
        return f"job/{self.prefix}/job/{quote(job, safe='')}"
