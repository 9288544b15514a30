"""Where unkindnesses reach into a world: each hook is a list, so that several of them act at once and each ends by itself."""

from collections.abc import Callable
from dataclasses import dataclass, field

from autoscaler.domain.facts.fleet import Pool
from autoscaler_workbench.fakes.world.ec2.instance import Instance
from autoscaler_workbench.fakes.world.faults import Fault, Faults
from autoscaler_workbench.fakes.world.jenkins.builds import Build, Ended
from autoscaler_workbench.fakes.world.jenkins.controller import Controller
from autoscaler_workbench.fakes.world.jenkins.nodes import Node
from autoscaler_workbench.fakes.world.world import World

Dice = Callable[[str], Fault | None]


@dataclass(slots=True)
class Calls:
    """The calls to one api. Of several dice the first that strikes counts."""

    faults: Faults
    dice: list[Dice] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.faults.dice = lambda call: next((fault for dice in self.dice if (fault := dice(call))), None)


@dataclass(slots=True)
class AtJenkins:
    """One controller. ``refuses``: Jenkins says why; ``silent``: it does not; ``keeps``: an executor shows what has ended."""

    controller: Controller
    calls: Calls
    refuses: list[Callable[[Build, Node], str | None]] = field(default_factory=list)
    silent: list[Callable[[Build, Node], bool]] = field(default_factory=list)
    connected: list[Callable[[Node], None]] = field(default_factory=list)
    unconnectable: list[Callable[[Node], bool]] = field(default_factory=list)
    begun: list[Callable[[Build], None]] = field(default_factory=list)
    keeps: list[Callable[[Build, Node], bool]] = field(default_factory=list)
    connections: dict[str, list[float]] = field(default_factory=dict)  # when each node connected

    def __post_init__(self) -> None:
        controller, connect, end, free_for, begins = (self.controller, *self._replaced())
        controller.veto = lambda build, node: next((words for refuses in self.refuses if (words := refuses(build, node))), None)
        controller.free_for = lambda build: [  # type: ignore[method-assign]
            node for node in free_for(build) if not any(silent(build, node) for silent in self.silent)
        ]

        def connects(name: str) -> None:
            node = controller.nodes.get(name)
            if node is None or any(refuses(node) for refuses in self.unconnectable):
                return
            self.connections.setdefault(name, []).append(controller.timeline.now)
            connect(name)
            if node.connected:
                for notice in self.connected:
                    notice(node)

        def ends(build: Build, how: Ended) -> None:
            node = controller.nodes.get(build.node or "")
            shown = node is not None and node.builds.get(build.executor) is build
            end(build, how)
            if node is not None and shown and how is Ended.FINISHED and any(keeps(build, node) for keeps in self.keeps):
                node.builds[build.executor] = build

        def begin(build: Build, done: Callable[[], None]) -> None:
            for notice in self.begun:
                notice(build)
            begins(build, done)

        controller.connect, controller._end, controller.begins = connects, ends, begin  # type: ignore[method-assign]

    def _replaced(self):
        return self.controller.connect, self.controller._end, self.controller.free_for, self.controller.begins

    def marks(self, node: Node, cause: str, reason: str) -> None:
        """Take a node offline as a monitor does it."""
        if not node.temporarily_offline:
            node.temporarily_offline, node.cause, node.reason = True, cause, reason
            node.cause_at = self.controller.timeline.now

    def ours(self, pool: Pool) -> list[Node]:
        """The nodes of a pool, in the order in which they were made."""
        return [node for node in self.controller.nodes.values() if is_of(node, pool)]


@dataclass(slots=True)
class AtEc2:
    """The region. ``hangs``: an instance that runs and never asks who it is."""

    world: World
    hangs: list[Callable[[Instance], bool]] = field(default_factory=list)

    def __post_init__(self) -> None:
        comes_up = self.world.ec2.on_running
        self.world.ec2.on_running = lambda instance: None if any(hangs(instance) for hangs in self.hangs) else comes_up(instance)

    def of(self, pool: Pool) -> list[Instance]:
        return [instance for instance in self.world.alive() if instance.tags.get("autoscaler:pool") == pool.name]


def is_of(node: Node, pool: Pool) -> bool:
    """Our nodes are named after their pool and their instance, and say that they are of our fleet, which names no home."""
    return node.name.startswith(f"{pool.name}-") and "of fleet f," in node.description and " in " not in node.description
