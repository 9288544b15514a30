"""Pairs of an item that waits and a node of its controller: would Jenkins start it there?

A planned world is set up in the simulated Jenkins, and the product's own adapter looks at it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from autoscaler.adapters.jenkins.controller import JenkinsController
from autoscaler.domain.facts.orders import Hold, Overrides, Scope
from autoscaler.domain.facts.snapshot import ControllerView, Node, QueueItem, Snapshot
from autoscaler_workbench.fakes.http_fakes.clients import LocalSession
from autoscaler_workbench.fakes.http_fakes.jenkins.api import JenkinsApi
from autoscaler_workbench.fakes.world.jenkins import controller as jenkins
from autoscaler_workbench.fakes.world.jenkins import nodes as jenkins_nodes
from autoscaler_workbench.fakes.world.jenkins.builds import Build, Kind
from autoscaler_workbench.fakes.world.timeline import Timeline
from support.builders import NOW, a_snapshot, an_instance
from support.label_truth import satisfies
from support.pair_worlds import PlannedNode, PlannedWorld
from support.worlds import a_world_node

_LONG_SECONDS = 1e6
_MINUTE = 60.0


@dataclass
class Stage:
    """A planned world, set up: simulated Jenkins controllers, and the builds that wait there."""

    plan: PlannedWorld
    timeline: Timeline = field(default_factory=lambda: Timeline(NOW))
    controllers: dict[str, jenkins.Controller] = field(default_factory=dict)
    adapters: dict[str, JenkinsController] = field(default_factory=dict)
    waiting: dict[tuple[str, int], Build] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.plan.fleet.controllers:
            self.controllers[name] = made = jenkins.Controller(name, self.timeline)
            api = JenkinsApi(made, f"http://{name}/")
            session = LocalSession(api)
            self.adapters[name] = JenkinsController(
                name,
                api.base,
                lambda session=session: session,
                lambda: self.timeline.now,
            )
            made.veto = lambda build, _: "Throttled" if build.job.startswith("vetoed") else None
        for node in self.plan.nodes:
            self._add(node)

    def _add(self, node: PlannedNode) -> None:
        controller = self.controllers[node.controller]
        facts = {"connected": node.connected, "exclusive": node.exclusive}
        controller.add_node(a_world_node(node.name, *node.labels, **facts))
        if node.is_busy:
            build = controller.submit("long", None, _LONG_SECONDS)
            controller.begin(build, controller.nodes[node.name])

    def queue(self) -> None:
        """Let a minute pass, and all items come at once: nobody has looked at an executor yet."""
        self.timeline.move_to(self.timeline.now + _MINUTE)
        for number, item in enumerate(self.plan.items):
            controller = self.controllers[item.controller]
            job = f"{'vetoed' if item.is_vetoed else 'job'}-{number}"
            kind = Kind.PIPELINE if item.said_by == "pipeline" else Kind.FREESTYLE
            build = controller.submit(job, item.asks, 60.0, kind=kind)
            build.label_is_given = item.said_by == "parameter"
            build.resumes_on = item.resumes_on or None
            self.waiting[item.controller, build.id] = build

    def views(self) -> dict[str, ControllerView]:
        """What the product's own adapter reads of each controller."""
        return {name: adapter.look() for name, adapter in self.adapters.items()}

    def snapshot(self, *, without_holds: bool = False, **facts: object) -> Snapshot:
        """Put together what a look sees."""
        records = tuple(node.record for node in self.plan.nodes if node.record)
        of_ec2 = (record for record in records if record.is_instance)
        made = (an_instance(r.machine, pool=r.pool, controller=r.controller) for r in of_ec2)
        return a_snapshot(
            *self.views().values(),
            taken_at=self.timeline.now,
            records=records,
            instances=tuple(made),
            overrides=holding(frozenset() if without_holds else self.plan.held),
            **facts,
        )

    def may_start(self, node: PlannedNode, build: Build) -> bool:
        """Tell whether Jenkins would start a build on a node: by the list its scheduler takes.

        A beacon never connects, whatever labels it has: nothing ever starts there.
        """
        controller = self.controllers[node.controller]
        return node.kind != "beacon" and controller.nodes[node.name] in controller.matching(build)

    def started(self) -> Iterator[tuple[str, Build]]:
        """Let Jenkins hand out its executors; yield what began, with its controller."""
        self.timeline.move_to(self.timeline.now + 1.0)
        for (name, _), build in self.waiting.items():
            if build.started_at is not None:
                yield name, build


def satisfied(build: Build, node: jenkins_nodes.Node) -> bool:
    """Tell whether a node satisfies a build, worked out without the product's reader of labels."""
    if build.resumes_on is not None:
        return node.name == build.resumes_on
    if build.label is None:
        return not node.exclusive
    return satisfies(build.label, {node.name, *node.labels})


def holding(labels: frozenset[str]) -> Overrides:
    holds = (
        Hold(
            scope=Scope.LABEL,
            name=label if re.fullmatch(r"[\w+./-]+", label) else f'"{label}"',
            since_at=NOW,
            until_at=None,
            by="ada",
            reason="upgrade",
        )
        for label in sorted(labels)
    )
    return Overrides(holds=tuple(holds))


# What Jenkins lets the product know of an item.

BY_ITS_JOB = "its job tells the label"
BY_JENKINS = "Jenkins names the label"
BY_A_NODE = "Jenkins names a node alone"
BY_NOTHING = "it asks for no label"
ON_HOLD = "a person holds its label"
BY_A_PLUGIN = "a plugin says why it waits"
WAYS = (BY_ITS_JOB, BY_JENKINS, BY_A_NODE, BY_NOTHING, ON_HOLD, BY_A_PLUGIN)


# What the product cannot know, with the reason.

NO_MODE = "Jenkins' list of nodes does not tell which of them take jobs without a label"
NO_BEACON = "without the first beacon nobody knows whether Jenkins had a node at that moment"
NAME_IS_LABEL = "Jenkins' words are the same for a node's name and a label that is spelled so"
LOOKS_LIKE = "Jenkins keeps an expression and a label of the same words under one name"
HIDDEN_BY_PLUGIN = "the words of a plugin take the place of a pipeline's label"
LIKE_THE_BEACON = "an agent with the labels of a beacon may have come after Jenkins named that one"
# What the product says on purpose though it knows better.
LEFT = "an agent whose pool left the file drains, and nobody counts on it"


@dataclass(frozen=True, kw_only=True)
class Pair:
    """An item of a controller and a node there, as the product sees them, and what they are."""

    plan: PlannedWorld
    view: ControllerView
    item: QueueItem
    node: Node
    build: Build
    planned_node: PlannedNode
    takers: int  # nodes that satisfy the item

    @property
    def alone(self) -> PlannedWorld:
        """The same world with this item alone, and without the other controller's nodes."""
        number = int(self.build.job.rpartition("-")[2])
        nodes = [node for node in self.plan.nodes if node.controller == self.view.name]
        return replace(self.plan, items=(self.plan.items[number],), nodes=tuple(nodes))

    @property
    def way(self) -> str:
        """Say how the product learns which label the item asks for."""
        wait, names = self.item.wait, {node.name for node in self.view.nodes}
        if wait.unclear:
            return BY_A_PLUGIN
        if self.item.label is not None:
            return BY_ITS_JOB
        if wait.nodes or (wait.label is None and wait.named in names):
            return BY_A_NODE
        is_named = wait.label is not None or wait.named is not None
        return BY_JENKINS if is_named else BY_NOTHING

    def why_unknown(self, *, said: bool) -> str:
        """Say why nobody can know whether they fit; "" if the product has to know it.

        If nobody can know, the product must say no. Only for two meanings of the same words (which
        Jenkins' own `getLabel` settles by what it met first) either answer will do; and where Jenkins
        names a beacon, an agent with its labels counts as one that may take the item.
        """
        way, named = self.way, self.item.wait.named
        if self.is_odd:
            return LOOKS_LIKE
        if said:
            return LIKE_THE_BEACON if way == BY_A_NODE and self._is_like_the_beacon else ""
        if way == BY_NOTHING and self.planned_node.kind == "left agent":
            return LEFT
        if way == BY_A_NODE and self.takers > 1 and named == self.build.asks_for:
            return NAME_IS_LABEL
        if way == BY_A_PLUGIN and self.item.asked_label is None:
            return HIDDEN_BY_PLUGIN
        if way == BY_NOTHING:
            return self._why_mode_unknown()
        return ""

    @property
    def _is_like_the_beacon(self) -> bool:
        named = (*self.item.wait.nodes, self.item.wait.named)
        labels = [node.labels - {node.name} for node in self.view.nodes if node.name in named]
        return self.node.labels - {self.node.name} in labels

    @property
    def is_odd(self) -> bool:
        """Tell whether it asks for an expression that is spelled like a label which a node has."""
        words = self.build.asks_for
        is_carried = any(words in node.labels for node in self.view.nodes)
        return is_carried and bool(re.search(r"[!&|<>()]", words))

    def _why_mode_unknown(self) -> str:
        record, names = self.planned_node.record, {node.name for node in self.view.nodes}
        if record is None or not record.labels:
            return NO_MODE
        is_told = self.item.labelless or self.plan.fleet.beacon in names
        return "" if is_told else NO_BEACON
