"""One way to set a scene on any Jenkins: the world in memory, the world over HTTP, or a live controller."""

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from autoscaler.adapters.jenkins.builds import JenkinsBuilds
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.runs import ItemState, Run
from autoscaler.ports import Builds, Controller
from autoscaler_workbench.fakes.http_fakes.jenkins.api import JenkinsApi
from autoscaler_workbench.fakes.http_fakes.jenkins.jobs import Job
from autoscaler_workbench.fakes.http_fakes.server import ApiServer
from autoscaler_workbench.fakes.world.jenkins.builds import Kind
from autoscaler_workbench.fakes.world.jenkins.controller import Controller as WorldController
from autoscaler_workbench.fakes.world.jenkins.urls import job_path
from autoscaler_workbench.fakes.world.timeline import Timeline
from support.builders import a_fleet, a_pool
from support.live import LiveJenkins
from support.worlds import Stand, a_world_node, stand

FAKE_JAVA = Path(__file__).parent / "bin" / "java"


class Rig(Protocol):
    """What a test may do with the Jenkins it is given. Names are made with `name`: others' things are never touched."""

    controller: Controller
    builds: Builds
    fleet: Fleet
    build_seconds: float

    def name(self, text: str) -> str: ...
    def add_node(self, name: str, *labels: str) -> None: ...
    def add_agent(self, name: str, *labels: str) -> None: ...
    def submit(self, job: str, label: str, seconds: float = 600.0, kind: Kind = Kind.FREESTYLE) -> str: ...
    def define(self, job: str, label: str, seconds: float = 600.0, kind: Kind = Kind.FREESTYLE, declares: tuple[str, ...] = ()) -> str: ...
    def stop(self, run: str) -> None: ...
    def console(self, run: str) -> str: ...
    def kill_agent(self, name: str) -> None: ...
    def own_node(self, name: str) -> None: ...
    def until(self, check: Callable[[], bool], what: str, *, hint: Callable[[], str] = str) -> None: ...


@dataclass(slots=True)
class WorldRig:
    """The simulated world: nobody else is there, and time passes when something is waited for."""

    stand: Stand
    build_seconds: float = 100.0

    @property
    def controller(self) -> Controller:
        return self.stand.controller

    @property
    def fleet(self) -> Fleet:
        return self.stand.fleet

    def name(self, text: str) -> str:
        return text

    def add_node(self, name: str, *labels: str) -> None:
        self.stand.jenkins.add_node(a_world_node(name, *labels, connected=False))

    def add_agent(self, name: str, *labels: str) -> None:
        self.stand.jenkins.add_node(a_world_node(name, *labels, connected=False))
        self.stand.jenkins.connect(name)

    def submit(self, job: str, label: str, seconds: float = 600.0, kind: Kind = Kind.FREESTYLE) -> str:
        self.stand.jenkins.submit(f"folder/{job}", label, seconds, kind=kind)
        return f"folder/{job}"

    @property
    def builds(self) -> Builds:
        return JenkinsBuilds(self.stand.controller.connection)

    def define(self, job: str, label: str, seconds: float = 600.0, kind: Kind = Kind.FREESTYLE, declares: tuple[str, ...] = ()) -> str:
        hides = frozenset(name for name in declares if "PASSWORD" in name)
        by = label.removeprefix("params.") if label.startswith("params.") else ""
        declared = dict.fromkeys(declares, "")
        self.stand.api.jobs.jobs[f"folder/{job}"] = Job(kind, label, seconds, declares=declared, hides=hides, label_parameter=by)
        return job_path(f"folder/{job}").rstrip("/")

    def stop(self, run: str) -> None:
        [build] = self.stand.jenkins.runs[f"{run}/"]
        self.stand.jenkins.abort(build)

    def console(self, run: str) -> str:
        return self.stand.api.jobs.console(run.split("/")) or ""

    def kill_agent(self, name: str) -> None:
        self.stand.jenkins.disconnect(name, killed_by="a test")

    def own_node(self, name: str) -> None:
        """Nothing has to be removed from a world that is thrown away."""

    def until(self, check: Callable[[], bool], what: str, *, hint: Callable[[], str] = str) -> None:
        for _ in range(600):
            if check():
                return
            self.stand.world.move_to(self.stand.world.timeline.now + 1.0)
        raise AssertionError(f"not within 600 s: {what} {hint()}")


@dataclass(slots=True)
class LiveRig:
    """A live controller; other people's nodes and jobs may be there."""

    live: LiveJenkins
    fleet: Fleet

    @property
    def controller(self) -> Controller:
        return self.live.controller

    @property
    def build_seconds(self) -> float:
        return self.live.build_seconds

    def name(self, text: str) -> str:
        return f"{self.live.prefix}-{text}"

    def add_node(self, name: str, *labels: str) -> None:
        self.live.add_node(name, *labels)

    def add_agent(self, name: str, *labels: str) -> None:
        self.live.add_node(name, *labels)
        self.live.start_agent(name)

    def submit(self, job: str, label: str, seconds: float = 600.0, kind: Kind = Kind.FREESTYLE) -> str:
        return self.live.submit(job, label, seconds, kind)

    @property
    def builds(self) -> Builds:
        return JenkinsBuilds(self.live.controller.connection)

    def define(self, job: str, label: str, seconds: float = 600.0, kind: Kind = Kind.FREESTYLE, declares: tuple[str, ...] = ()) -> str:
        return self.live.define(job, label, seconds, kind, declares)

    def stop(self, run: str) -> None:
        self.live.session.post(f"{run}/stop")

    def console(self, run: str) -> str:
        return self.live.console(run)

    def kill_agent(self, name: str) -> None:
        self.live.kill_agent(name)

    def own_node(self, name: str) -> None:
        self.live.own_node(name)

    def until(self, check: Callable[[], bool], what: str, *, hint: Callable[[], str] = str) -> None:
        self.live.until(check, what, hint=hint)


def begun(here: Rig, job: str, item: int) -> str:
    """The path of the build that a queue item becomes."""
    here.until(lambda: here.builds.item(item).state is ItemState.STARTED, "the build begins")
    run = here.builds.item(item).run
    assert run.startswith(f"{job}/")
    return run


def ended(here: Rig, run: str) -> Run:
    here.until(lambda: not _run(here, run).building, "the build ends")
    return _run(here, run)


def _run(here: Rig, path: str) -> Run:
    run = here.builds.run(path)
    assert run is not None, f"{path} is not there"
    return run


@contextmanager
def world_rig(kind: str) -> Iterator[WorldRig]:
    with stand(kind) as stood:
        yield WorldRig(stood)


@contextmanager
def live_jenkins() -> Iterator[LiveJenkins]:
    """The controller of ``JENKINS_URL``; without one, the stand-in over HTTP, with an agent of its own."""
    with _from_environment() or stand_in_jenkins() as live, opened(live):
        yield live


@contextmanager
def opened(live: LiveJenkins) -> Iterator[None]:
    """Use a controller, and remove what was made there whatever happens."""
    with ended_by_signals():
        try:
            live.open()
            yield
        finally:
            live.close()


@contextmanager
def live_rig(live: LiveJenkins) -> Iterator[LiveRig]:
    """One test's part of a live controller."""
    pools = (a_pool(f"{live.prefix}-{text}", queue_maturity_seconds=0.0, drain_settle_seconds=1.0) for text in ("cpu", "gpu"))
    fleet = a_fleet(*pools)
    try:
        yield LiveRig(live, Fleet(name=live.prefix, limits=fleet.limits, controllers=fleet.controllers, pools=fleet.pools))
    finally:
        live.clean()


def _from_environment() -> Any:
    url = os.environ.get("JENKINS_URL")
    if not url:
        return None
    missing = [name for name in ("JENKINS_USER", "JENKINS_TOKEN") if not os.environ.get(name)]
    assert not missing, f"{missing[0]}: missing; a live run needs JENKINS_URL, JENKINS_USER and JENKINS_TOKEN"

    @contextmanager
    def given() -> Iterator[LiveJenkins]:
        user, token, java = os.environ["JENKINS_USER"], os.environ["JENKINS_TOKEN"], os.environ.get("LIVE_JAVA", "java")
        yield LiveJenkins(url, user, token, java=java, restart=restart_by(os.environ.get("RESTART_COMMAND", "")))

    return given()


def restart_by(command: str) -> Callable[[], None] | None:
    """Restart a Jenkins by a command of the person whose it is; None without one."""

    def restart() -> None:
        done = subprocess.run(shlex.split(command), capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, f"RESTART_COMMAND ({command}): exit {done.returncode}; {done.stdout}{done.stderr}"

    return restart if command else None


@dataclass(slots=True)
class StandInClock:
    """The stand-in's time: the wall clock's, and what was skipped because a test waited. Agents' processes need a little of the former."""

    skipped_seconds: float = 0.0

    def now(self) -> float:
        return time.time() + self.skipped_seconds

    def pass_time(self, seconds: float) -> None:
        time.sleep(0.01)
        self.skipped_seconds += seconds


@contextmanager
def stand_in_jenkins(plugins: tuple[str, ...] = ("matrix-project", "nodelabelparameter")) -> Iterator[LiveJenkins]:
    """A controller of the world, on a clock that goes on by what tests wait for; in the end nothing may be left on it."""
    clock = StandInClock()
    timeline = Timeline(clock.now())
    with ApiServer() as server:
        jenkins = WorldController("main", timeline)
        server.jenkins["main"] = JenkinsApi(jenkins, f"{server.url}/jenkins/main/", accounts={"live": "live-token"})
        server.jenkins["main"].jobs.plugins = set(plugins)
        server.before_answer = lambda: timeline.move_to(clock.now())
        url = f"{server.url}/jenkins/main/"

        def restart() -> None:
            with server.lock:
                timeline.move_to(clock.now())
                jenkins.restart()

        times = {"build_seconds": 6.0, "poll_seconds": 0.2, "now": clock.now, "pass_time": clock.pass_time}
        yield LiveJenkins(url, "live", "live-token", java=str(FAKE_JAVA), restart=restart, is_stand_in=True, **times)
        left = [*jenkins.nodes, *server.jenkins["main"].jobs.folders, *server.jenkins["main"].jobs.jobs, *jenkins.queue]
        assert left == [], f"left on the controller: {left}"


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Clean up, too, when the run is told to end. Without this, what a shell begins in the background ignores an interrupt."""

    def end(number: int, _frame: object) -> None:
        raise KeyboardInterrupt(f"signal {number}")

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
