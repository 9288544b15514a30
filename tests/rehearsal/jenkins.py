"""The controller of a rehearsal: the simulated Jenkins over HTTP on the wall clock, or with ``JENKINS_URL`` a real one."""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from autoscaler.adapters.jenkins.session import NotThereError
from autoscaler_workbench.fakes.http_fakes.jenkins.api import JenkinsApi
from autoscaler_workbench.fakes.http_fakes.server import ApiServer
from autoscaler_workbench.fakes.world.jenkins.controller import Controller
from autoscaler_workbench.fakes.world.timeline import Timeline
from rehearsal.plan import POOL, SPOT_POOL, Plan
from support.live import LiveJenkins
from support.rig import FAKE_JAVA, opened

BEACON = "autoscaler-beacon-"
_UNTIL_TOLD_SECONDS = 86_400.0
_USER, _TOKEN = "live", "live-token"  # whose name the stand-in for Java uses, too


@dataclass(slots=True)
class Jenkins:
    """Jobs, their builds, and nodes.

    A build ends when it is told to, so that nothing depends on how fast the machine is. On a real Jenkins its shell looks for a file in
    ``ends``. ``finish`` ends the running builds of a job on the simulated Jenkins.
    """

    live: LiveJenkins
    ends: Path
    finish: Callable[[str], None] = lambda _job: None
    queued: dict[str, int] = field(default_factory=dict)  # builds by job

    @property
    def url(self) -> str:
        return self.live.url

    @property
    def secret(self) -> dict[str, str]:
        """What the functions sign in with."""
        return {"username": self.live.user, "token": self.live.token}

    def queue(self, job: str, label: str) -> None:
        """Queue a build of a job, which lasts until it is told to end; the job is made at its first build."""
        self._end_of(job).unlink(missing_ok=True)
        if job not in self.queued:
            self.live.define(job, label, _UNTIL_TOLD_SECONDS, ended_by=self._end_of(job))
        self.live.session.post(f"{self._path(job)}/build", {"delay": "0sec"})
        self.queued[job] = self.queued.get(job, 0) + 1

    def let_end(self, *jobs: str) -> None:
        """Let the running builds of these jobs end well."""
        for job in jobs:
            self._end_of(job).touch()
            self.finish(f"{self.live.prefix}/{job}")

    def _end_of(self, job: str) -> Path:
        return self.ends / job

    def results(self) -> dict[str, str | None]:
        """The result of the last build of each job; None while it waits or runs."""
        return {job: result for job, (result, _) in self._last_builds().items()}

    def nodes_by_job(self) -> dict[str, str]:
        """The node of the last build of each job, if that build has begun."""
        return {job: node for job, (_, node) in self._last_builds().items() if node}

    def nodes(self) -> dict[str, bool]:
        """The fleet's nodes, and whether each is online. Beacons are left out."""
        prefixes = (f"{POOL}-", f"{SPOT_POOL}-")
        return {node.name: not node.offline for node in self.live.look().nodes if node.name.startswith(prefixes)}

    def builds(self) -> int:
        """How many builds there are, waiting ones included."""
        return sum(self.queued.values())

    def lost(self) -> list[str]:
        """Builds that ended in another way than by success."""
        lost = []
        for job in self.queued:
            shown = self.live.session.get(f"{self._path(job)}/api/json", "builds[number,result,building]").json()
            lost += [
                f"{job} #{build['number']}: {build['result']}" for build in shown["builds"] if build["result"] not in {None, "SUCCESS"}
            ]
        return lost

    def remove_beacons(self) -> int:
        """Delete the nodes that the page about removal names; return how many there were."""
        beacons = [node.name for node in self.live.look().nodes if node.name.startswith(BEACON)]
        for name in beacons:
            self.live.controller.delete_node(name)
        return len(beacons)

    def _last_builds(self) -> dict[str, tuple[str | None, str]]:
        shown = {}
        for job, count in self.queued.items():
            try:
                build = self.live.session.get(f"{self._path(job)}/{count}/api/json", "result,building,builtOn").json()
            except NotThereError:
                shown[job] = None, ""
            else:
                shown[job] = None if build["building"] else build["result"], build.get("builtOn") or ""
        return shown

    def _path(self, job: str) -> str:
        return self.live._job_path(job)


@contextmanager
def jenkins(plan: Plan) -> Iterator[Jenkins]:
    """The controller; what the rehearsal made there is removed in the end."""
    ends = plan.folder / "ends"
    shutil.rmtree(ends, ignore_errors=True)
    ends.mkdir()
    url = os.environ.get("JENKINS_URL")
    if url:
        live = LiveJenkins(url, os.environ["JENKINS_USER"], os.environ["JENKINS_TOKEN"], java=os.environ.get("LIVE_JAVA", "java"))
        with opened(live):
            yield Jenkins(live, ends)
        return
    timeline = Timeline(time.time())
    with ApiServer(plan.jenkins_port) as server:
        place = f"{server.url}/jenkins/main/"
        controller = Controller("main", timeline)
        server.jenkins["main"] = JenkinsApi(controller, place, accounts={_USER: _TOKEN})
        server.before_answer = lambda: timeline.move_to(time.time())

        def finish(job: str) -> None:
            with server.lock:
                timeline.move_to(time.time())
                for build in [build for node in controller.nodes.values() for build in node.builds.values() if build.job == job]:
                    controller.finish(build)

        live = LiveJenkins(place, _USER, _TOKEN, java=str(FAKE_JAVA))
        with opened(live):
            yield Jenkins(live, ends, finish)
