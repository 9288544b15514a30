"""The world seen straight, without JSON in between: what the adapters read from the world's faces, some ten times faster.

Only what every pass reads is here; each other call goes through the adapters. That both ways see the same is a property of the tests.
"""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from math import floor
from typing import Any

from autoscaler.adapters.ec2 import Ec2Compute, instance_of
from autoscaler.adapters.jenkins.controller import JenkinsController
from autoscaler.adapters.jenkins.health import read_result
from autoscaler.adapters.jenkins.parse import job_of, read_node, read_version, run_of, unknown_wait
from autoscaler.adapters.jenkins.why import read_why
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.snapshot import BuildResult, ControllerView, Instance, Node, QueueItem, Wait
from autoscaler.errors import TransientError
from workbench.fakes.faces.ec2_face import Ec2Face, instance_json
from workbench.fakes.faces.jenkins_face import JenkinsFace
from workbench.fakes.faces.jenkins_json import builtin_json, node_json, why_of
from workbench.fakes.faces.jobs import result_of
from workbench.fakes.faces.local import LocalEc2Client, LocalSession
from workbench.fakes.world import ec2, jenkins
from workbench.fakes.world.faults import ConnectionLostError, StatusError
from workbench.fakes.world.listing import Listing

_CALLS_OF_A_LOOK = ("jenkins queue", "jenkins computer", "jenkins api")
_LISTED = {"pending", "running", "stopping", "stopped", "shutting-down"}
_LONG_AGO = datetime.fromtimestamp(0, UTC)  # no build of the world tells its age


class StraightController(JenkinsController):
    """One controller of the world."""

    def __init__(self, face: JenkinsFace) -> None:
        """Look at this one; whatever else is asked goes to its face."""
        session: Any = LocalSession(face)
        super().__init__(face.controller.name, face.base, lambda: session, lambda: face.controller.timeline.now)
        self._face = face
        self._world = face.controller
        self._nodes: dict[str, tuple[tuple[Any, ...], Node]] = {}
        self._items: dict[int, tuple[str, str]] = {}
        self._builtin = read_node(builtin_json(self._world.monitors, self._world.timeline.now), _LONG_AGO)
        self._last: tuple[tuple[float, int, int], ControllerView] | None = None

    def look(self) -> ControllerView:
        """See queue, nodes and state."""
        if self._world.up != "up":
            return super().look()
        try:
            for call in _CALLS_OF_A_LOOK:
                with self._face.faults.around(call):
                    pass
        except (ConnectionLostError, StatusError) as error:
            return ControllerView.of_nothing(self._world.name, str(error), 0.0)
        # Whatever changes this controller is an event of the world, or a call to one of its faces.
        state = self._world.timeline.now, self._world.timeline.happened, self._face.acted
        if self._last is None or self._last[0] != state:
            self._last = state, self._seen_now()
        return self._last[1]

    def node(self, name: str) -> Node | None:
        """Read one node from the world."""
        if self._world.up != "up":
            return super().node(name)
        try:
            with self._face.faults.around("jenkins computer"):
                node = self._world.nodes.get(name)
        except (ConnectionLostError, StatusError) as error:
            raise TransientError(f"node {name} was not read") from error
        return self._node(node) if node is not None else None

    def result(self, run: str) -> BuildResult | None:
        """Read the run from the world."""
        try:
            with self._face.faults.around("jenkins job"):
                builds = self._world.runs.get(f"{run}/", [])
        except (ConnectionLostError, StatusError) as error:
            raise TransientError(f"{run} was not read") from error
        word = result_of(builds) if builds else None
        return read_result({"building": word is None, "result": word})

    def _seen_now(self) -> ControllerView:
        said: dict[str, str] = {}
        now = float(floor(self._world.timeline.now))  # a Date header knows no fractions
        return ControllerView(
            name=self._world.name,
            problem=None,
            session=self._world.session,
            quieting_down=self._world.quieting_down,
            items=tuple([self._item(build, now, said) for build in self._world.queue]),
            nodes=(self._builtin, *[self._node(node) for node in self._world.nodes.values()]),
            unread=frozenset(),
            set_aside=(),
            response_seconds=0.0,
            version=read_version(self._world.version),
            shows_jobs=bool(self._world.builds or self._face.jobs.jobs or self._face.jobs.folders),
        )

    def _item(self, build: jenkins.Build, now: float, said: dict[str, str]) -> QueueItem:
        pipeline = build.kind is jenkins.Kind.PIPELINE
        waiting = build.buildable_at > self._world.timeline.now
        quieted = self._world.quieting_down and pipeline and build.resumes_on is None
        since = build.queued_at if waiting else build.buildable_at
        why = why_of(self._world, build, said)
        if build.id not in self._items:
            self._items[build.id] = job_of(build.run_path if pipeline else build.job_path), run_of(build.run_path) if pipeline else ""
        job, run = self._items[build.id]
        return QueueItem(
            id=build.id,
            job=job,
            run=run,
            label=None if pipeline else build.label or None,
            labelless=not pipeline and not build.label,
            wait=_wait(why) or unknown_wait(why, [*self._world.nodes, self._builtin.name]),
            buildable=not (waiting or build.blocked or quieted),
            waiting_seconds=max(0.0, now - int(since * 1000) / 1000.0),
        )

    def _node(self, node: jenkins.Node) -> Node:
        signs = (node.temporarily_offline, node.connected, node.cause, node.reason, node.labels, *node.builds.items())
        known = self._nodes.get(node.name)
        if known is None or known[0] != signs:
            known = self._nodes[node.name] = signs, read_node(node_json(node, self._face.base, self._world.timeline.now), _LONG_AGO)
        return known[1]


class StraightCompute(Ec2Compute):
    """EC2 of the world, as far as this fleet is concerned."""

    def __init__(self, face: Ec2Face, fleet: Fleet) -> None:
        """List from the world; whatever else is asked goes to its face."""
        client: Any = LocalEc2Client(face)
        super().__init__(lambda: client, fleet, lambda: client)
        self._face = face
        self._name = fleet.name
        self._seen: dict[str, tuple[tuple[Any, ...], Instance]] = {}
        self._last: tuple[tuple[float, int, Listing], tuple[Instance, ...]] | None = None
        self._versions: tuple[dict[str, int], Mapping[str, str]] | None = None

    def instances(self) -> tuple[Instance, ...]:
        """List what has not ended."""
        try:
            with self._face.faults.around("ec2 DescribeInstances"):
                pass
        except (ConnectionLostError, StatusError) as error:
            raise TransientError("DescribeInstances failed") from error
        # What is listed changes with an instance, or with time: new ones turn up late, those that ended are forgotten.
        state = self._face.ec2.timeline.now, self._face.ec2.changes, self._face.ec2.listing
        if self._last is None or self._last[0] != state:
            self._last = state, self._listed_now()
        return self._last[1]

    def template_versions(self, pools: Collection[str]) -> Mapping[str, str]:
        """Ask again only when a template has changed since."""
        now = self._face.ec2.template_versions | {f"{name} $Latest": of for name, of in self._face.ec2.latest_versions.items()}
        if self._versions is None or self._versions[0] != now:
            self._versions = now, super().template_versions(pools)
        return self._versions[1]

    def _listed_now(self) -> tuple[Instance, ...]:
        shown = self._face.ec2.describe({})
        return tuple([self._instance(i) for i in shown if i.state in _LISTED and i.tags.get("autoscaler:fleet") == self._name])

    def _instance(self, instance: ec2.Instance) -> Instance:
        signs = (instance.state, *instance.tags.values())
        known = self._seen.get(instance.id)
        if known is None or known[0] != signs:
            known = self._seen[instance.id] = signs, instance_of(instance_json(instance))
        return known[1]


@lru_cache(maxsize=10_000)
def _wait(why: str) -> Wait | None:
    return read_why(why)
