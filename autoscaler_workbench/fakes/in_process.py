"""The world read in process, without JSON in between: what the adapters would read from its APIs, some ten times faster.

Only what every pass reads is here; each other call goes through the adapters. A property test holds that both ways see the same.
"""

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from math import floor
from typing import Any

from autoscaler.adapters.ec2 import Ec2Compute, instance_of
from autoscaler.adapters.jenkins import controller
from autoscaler.adapters.jenkins.controller import JenkinsController
from autoscaler.adapters.jenkins.flow_graph import read_health, read_result
from autoscaler.adapters.jenkins.parse import (
    job_of,
    parameters_of,
    read_node,
    read_version,
    read_why,
    run_of,
    unknown_wait,
    waits_for_quiet_mode,
)
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.job_settings import JobParameters
from autoscaler.domain.facts.nodes import Health
from autoscaler.domain.facts.runs import RunEnd
from autoscaler.domain.facts.snapshot import ControllerView, Instance, Node, QueueItem, Wait
from autoscaler.errors import TransientError
from autoscaler_workbench.fakes.http_fakes.aws.ec2 import Ec2Api, instance_json
from autoscaler_workbench.fakes.http_fakes.clients import LocalEc2Client, LocalSession
from autoscaler_workbench.fakes.http_fakes.jenkins.answers import (
    BUILDABLE,
    WAITING,
    actions_of,
    builtin_json,
    computers_json,
    item_kind,
    lasting_pipelines,
    node_json,
    why_of,
)
from autoscaler_workbench.fakes.http_fakes.jenkins.api import JenkinsApi
from autoscaler_workbench.fakes.http_fakes.jenkins.jobs import is_run, run_json
from autoscaler_workbench.fakes.world.ec2.instance import Instance as Ec2Instance
from autoscaler_workbench.fakes.world.ec2.listing import Listing
from autoscaler_workbench.fakes.world.faults import ConnectionLostError, Faults, StatusError
from autoscaler_workbench.fakes.world.jenkins.builds import Build, Kind
from autoscaler_workbench.fakes.world.jenkins.nodes import Monitors
from autoscaler_workbench.fakes.world.jenkins.nodes import Node as JenkinsNode

_CALLS_OF_A_LOOK = ("jenkins queue", "jenkins computer", "jenkins api")
_READ_MONITORS = ("DiskSpaceMonitor", "TemporarySpaceMonitor", "SwapSpaceMonitor", "ResponseTimeMonitor")
_LISTED = {"pending", "running", "stopping", "stopped", "shutting-down"}
_LONG_AGO = datetime.fromtimestamp(0, UTC)  # no build of the world tells its age


class InProcessController(JenkinsController):
    """One controller of the world."""

    def __init__(
        self, api: JenkinsApi, tell_apart: JobParameters, connect: Callable[[], Any] | None = None, *, keeps_looks: bool = True
    ) -> None:
        """Look at this one; any other call goes to its API.

        ``connect``: opens a session there. ``keeps_looks``: False where a test changes the world beside its events and its API.
        """
        session: Any = LocalSession(api)
        super().__init__(api.controller.name, api.base, connect or (lambda: session), lambda: api.controller.timeline.now, tell_apart)
        self._keeps_looks = keeps_looks
        self._size = 0  # of Jenkins' reasons in the queue's answer, in characters
        self._api = api
        self._world = api.controller
        self._nodes: dict[str, tuple[tuple[Any, ...], Node]] = {}
        self._items: dict[int, tuple[str, str]] = {}
        self._pipelines = lasting_pipelines(self._world)
        self._builtin = read_node(builtin_json(self._world, api.base), _LONG_AGO)
        self._last: tuple[tuple[float, int, int], ControllerView] | None = None
        self._healths: tuple[dict[str, tuple[Any, ...]], dict[str, Health]] | None = None

    @property
    def _may_be_refused(self) -> bool:
        """Its API says how: it is not up, accounts are checked, or a login page is in front of it."""
        return self._world.up != "up" or bool(self._api.accounts or self._api.passwords or self._api.login_page)

    def look(self) -> ControllerView:
        """See queue, nodes and state."""
        if self._may_be_refused:
            return super().look()
        try:
            _reach(self._api.faults, self._world.name, *_CALLS_OF_A_LOOK)
        except TransientError as error:
            return ControllerView.of_nothing(self._world.name, str(error), 0.0)
        # Whatever changes this controller is an event of the world, or a call to its API.
        state = self._world.timeline.now, self._world.timeline.happened, self._api.acted
        if self._last is None or self._last[0] != state or not self._keeps_looks:
            self._last = state, self._seen_now()
        # What does not fit in one answer is read in parts, by the adapter.
        return super().look() if self._size >= controller.WHOLE_BYTES else self._last[1]

    def node(self, name: str) -> Node | None:
        """Read one node from the world."""
        if self._may_be_refused:
            return super().node(name)
        _reach(self._api.faults, f"node {name}", "jenkins computer")
        node = self._world.computer(name)
        return self._node(node) if node is not None else None

    def health(self) -> dict[str, Health]:
        """Read the monitors from the world. Where an account may not see them, its API says so."""
        if self._may_be_refused or self._api.lacks:
            return super().health()
        _reach(self._api.faults, "health", "jenkins computer")
        machines = {"": self._world.monitors} | {name: node.monitors for name, node in self._world.nodes.items()}
        signs = {name: _signs_of(monitors, self._world.timeline.now) for name, monitors in machines.items()}
        if self._healths is None or self._healths[0] != signs:
            self._healths = signs, read_health(computers_json(self._world, self._api.base))
        return self._healths[1]

    def result(self, run: str) -> RunEnd | None:
        """Read the run from the world."""
        if self._may_be_refused:
            return super().result(run)
        _reach(self._api.faults, run, "jenkins job")
        builds = self._world.runs.get(f"{run}/", [])
        return read_result(run_json(builds, with_graph=False)) if builds and is_run(builds[0]) else None

    def _seen_now(self) -> ControllerView:
        said: dict[str, str] = {}
        self._size = 0
        now = float(floor(self._world.timeline.now))  # a Date header knows no fractions
        return ControllerView(
            name=self._world.name,
            problem=None,
            session=self._world.session,
            quieting_down=self._world.quieting_down,
            quiet_reason=self._world.quiet_reason or "",
            items=tuple([self._item(build, now, said) for build in self._world.queue]),
            nodes=(
                self._builtin_now(),
                *[self._node(node) for node in (*self._world.nodes.values(), *self._world.gone.computers.values())],
            ),
            unread=frozenset(),
            set_aside=(),
            response_seconds=0.0,
            version=read_version(self._world.version),
            shows_jobs=bool(self._world.builds or self._world.defined or self._api.jobs.jobs or self._api.jobs.folders),
        )

    def _builtin_now(self) -> Node:
        """Read the built-in node anew if other pipelines last."""
        if (pipelines := lasting_pipelines(self._world)) != self._pipelines:
            self._pipelines, self._builtin = pipelines, read_node(builtin_json(self._world, self._api.base), _LONG_AGO)
        return self._builtin

    def _item(self, build: Build, now: float, said: dict[str, str]) -> QueueItem:
        pipeline = build.kind is Kind.PIPELINE
        kind = item_kind(self._world, build)
        since = build.queued_at if kind == WAITING else build.buildable_at
        why = why_of(self._world, build, said)
        self._size += len(why)
        if build.id not in self._items:
            self._items[build.id] = job_of(build.run_path if pipeline else build.job_path), run_of(build.run_path) if pipeline else ""
        job, run = self._items[build.id]
        label = None if pipeline or build.label_is_given else build.label or None
        return QueueItem(
            id=build.id,
            job=job,
            run=run,
            label=label,
            labelless=not pipeline and not label,
            wait=_wait(why) or unknown_wait(why, [*self._world.nodes, self._builtin.name]),
            buildable=kind == BUILDABLE,
            waiting_seconds=max(0.0, now - int(since * 1000) / 1000.0),
            in_quiet_mode=waits_for_quiet_mode(why),
            signature=build.stage if pipeline else self._told_apart(job, build),
        )

    def _told_apart(self, job: str, build: Build) -> str:
        return self.tell_apart.signature(job, parameters_of(actions_of(build.started_with))) if self.tell_apart else ""

    def _node(self, node: JenkinsNode) -> Node:
        mark = node.temporarily_offline, node.cause, node.cause_at, node.reason
        signs = (
            *mark,
            node.connected,
            node.labels,
            node.executors,
            *node.subtasks,
            *node.builds.items(),
            *(build.stage for build in node.builds.values()),
        )
        known = self._nodes.get(node.name)
        if known is None or known[0] != signs:
            known = self._nodes[node.name] = (
                signs,
                read_node(node_json(node, self._api.base, self._world.timeline.now), _LONG_AGO, self.tell_apart),
            )
        return known[1]


class InProcessCompute(Ec2Compute):
    """EC2 of the world, as far as this fleet is concerned."""

    def __init__(self, api: Ec2Api, fleet: Fleet, attempts: int = 1) -> None:
        """List from the world; any other call goes to its API. ``attempts``: of a call that fails, but for launches."""
        client: Any = LocalEc2Client(api, attempts)
        launcher: Any = LocalEc2Client(api)
        super().__init__(lambda: client, fleet, lambda: launcher)
        self._api = api
        self._name = fleet.name
        self._seen: dict[str, tuple[tuple[Any, ...], Instance]] = {}
        self._last: tuple[tuple[float, int, Listing], tuple[Instance, ...]] | None = None
        self._versions: tuple[dict[str, int], Mapping[str, str]] | None = None

    def instances(self) -> tuple[Instance, ...]:
        """List what has not ended."""
        _reach(self._api.faults, "DescribeInstances", "ec2 DescribeInstances")
        # What is listed changes with an instance, or with time: new ones turn up late, those that ended are forgotten.
        state = self._api.ec2.timeline.now, self._api.ec2.changes, self._api.ec2.listing
        if self._last is None or self._last[0] != state:
            self._last = state, self._in(_LISTED)
        return self._last[1]

    def ended_lately(self) -> tuple[Instance, ...]:
        """List what has terminated, and is remembered."""
        _reach(self._api.faults, "DescribeInstances", "ec2 DescribeInstances")
        return self._in(frozenset({"terminated"}))

    def template_versions(self, pools: Collection[str]) -> Mapping[str, str]:
        """Ask again only when a template has changed since."""
        now = self._api.ec2.template_versions | {f"{name} $Latest": of for name, of in self._api.ec2.latest_versions.items()}
        if self._versions is None or self._versions[0] != now:
            self._versions = now, super().template_versions(pools)
        return self._versions[1]

    def _in(self, states: Collection[str]) -> tuple[Instance, ...]:
        shown = self._api.ec2.describe({})
        return tuple([self._instance(i) for i in shown if i.state in states and i.tags.get("autoscaler:fleet") == self._name])

    def _instance(self, instance: Ec2Instance) -> Instance:
        signs = (instance.state, instance.state_reason, instance.started_at, *instance.tags.values())
        known = self._seen.get(instance.id)
        if known is None or known[0] != signs:
            known = self._seen[instance.id] = signs, instance_of(instance_json(instance))
        return known[1]


def _signs_of(monitors: Monitors, now: float) -> tuple[Any, ...]:
    """What is read of a machine's monitors follows from these."""
    told = [monitors.tells(monitor, now) for monitor in _READ_MONITORS]
    return monitors.disk_bytes, monitors.memory_bytes, monitors.response_ms, *told


def _reach(faults: Faults, what: str, *calls: str) -> None:
    """Let the calls fail that a read takes, as planned."""
    try:
        for call in calls:
            with faults.around(call):
                pass
    except (ConnectionLostError, StatusError) as error:
        raise TransientError(f"{what} was not read: {error}") from error


@lru_cache(maxsize=10_000)
def _wait(why: str) -> Wait | None:
    return read_why(why)
