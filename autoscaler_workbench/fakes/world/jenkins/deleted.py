"""Pipelines of the simulated Jenkins that lose their agent or their node, as seen on 2.504.3 with workflow-durable-task-step 1442.

- An agent that goes away while `sh` is just starting there: the pipeline fails at once.
- An agent that stays away: a step that needs it, such as ``sh``, is aborted after five minutes. A pipeline that waits for a person is not.
- A deleted node: its computer stays listed, offline and without executors, as long as a pipeline is on it. Five minutes after the
  deletion the plugin looks for that computer, and ends what is there. If its agent is back by then, under a node of the same name, the
  pipeline goes on.
- A second deletion removes the computer itself. Then the plugin finds nothing and ends nothing: the pipeline is stranded and waits for
  ever.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from autoscaler_workbench.fakes.world.jenkins.builds import Build, Kind, Stopper
from autoscaler_workbench.fakes.world.jenkins.nodes import Node

if TYPE_CHECKING:
    from autoscaler_workbench.fakes.world.jenkins.controller import Controller

# ExecutorStepExecution.TIMEOUT_WAITING_FOR_NODE_MILLIS
_WAITS_SECONDS = 300.0
# AnomalousStatus looks every five minutes, and cancels what it misses the second time.
_CANCELS_AFTER_SECONDS = 600.0


@dataclass(slots=True)
class Gone:
    """Deleted nodes. ``computers``: still listed, since pipelines are on them; ``stranded``: pipelines that nothing will end.

    ``are_cancelled``: Jenkins notices these at last.
    """

    computers: dict[str, Node] = field(default_factory=dict)
    stranded: list[Build] = field(default_factory=list)
    are_cancelled: bool = False


def delete(controller: "Controller", name: str) -> None:
    """Delete a node, or what is still listed of it."""
    if name in controller.gone.computers:
        _strand(controller, controller.gone.computers.pop(name))
        return
    node = controller.nodes.pop(name)
    for _, matching in controller.matches:
        if node in matching:
            matching.remove(node)
    if node.builds:
        controller.gone.computers[name] = node
        node.labels, node.executors, node.connected, node.is_deleted = (), 0, False, True
        node.clear_mark()
    for build in [*node.builds.values(), *(one for one in controller.queue if one.resumes_on == name)]:
        loses_node(controller, build)
    controller.on_delete(name)


def loses_node(controller: "Controller", build: Build) -> None:
    """Let a build lose its node: a freestyle build ends at once, a pipeline five minutes later."""
    build.killed_by = build.killed_by or "its node was deleted"
    if build.kind is Kind.FREESTYLE:
        controller.kill(build)
    else:
        controller.timeline.after(_WAITS_SECONDS, lambda: _end_what_is_there(controller, build))


def _end_what_is_there(controller: "Controller", build: Build) -> None:
    """End a pipeline that waits in the queue for a node that is gone, or whose computer is listed and offline."""
    computer = controller.computer(build.node)
    is_there = computer is not None and build in computer.builds.values() and not computer.connected
    if build in controller.queue or is_there:
        _abort(controller, build, Stopper.REMOVED_NODE)


def goes_away(controller: "Controller", node: Node) -> None:
    """Let the agent of a node go away: what a pipeline runs there is given up unless the agent is back in time, or at once."""
    since = node.away_since = controller.timeline.now
    pipelines = [build for build in node.builds.values() if build.kind is Kind.PIPELINE]
    for build in pipelines:
        if not (build.waits_for_input or build.sh_has_begun(since)):
            build.killed_by = build.killed_by or f"the agent of {node.name} went away before sh had begun"
            controller.kill(build)
    waiting = [build for build in pipelines if build.ended is None]
    if waiting:
        controller.timeline.after(_WAITS_SECONDS, lambda: _end_those_that_wait(controller, node, since, waiting))


def _end_those_that_wait(controller: "Controller", node: Node, since: float, waiting: list[Build]) -> None:
    if node.away_since != since or node.is_deleted or controller.nodes.get(node.name) is not node:
        return
    for build in waiting:
        if build in node.builds.values() and not build.waits_for_input:
            build.killed_by = build.killed_by or f"the agent of {node.name} was away for five minutes"
            _abort(controller, build, Stopper.AGENT_AWAY)


def take_over(controller: "Controller", node: Node) -> None:
    """Give a new node the computer of a deleted one of its name, with the pipelines that are there (AbstractCIBase.updateComputer)."""
    computer = controller.gone.computers.pop(node.name, None)
    if computer is None:
        return
    node.most_executors = max(node.most_executors, computer.most_executors)
    for executor, build in computer.builds.items():
        node.builds[executor] = build
        controller.finish_later(build)


def leave_computer(controller: "Controller", node: Node) -> None:
    """Stop listing the computer of a deleted node once nothing is on it any more."""
    if node.is_deleted and not node.builds:
        controller.gone.computers.pop(node.name, None)


def resume_elsewhere(controller: "Controller") -> list[Build]:
    """Name the pipelines that a restart loads again though their nodes are gone; nothing of these is listed after it."""
    lost = [build for node in controller.gone.computers.values() for build in node.builds.values()]
    lost += controller.gone.stranded
    controller.gone.computers.clear()
    controller.gone.stranded = []
    return [build for build in lost if build.ended is None]


def _strand(controller: "Controller", computer: Node) -> None:
    for build in computer.builds.values():
        if build.ended is None:
            build.killed_by = build.killed_by or "its node was deleted"
            controller.gone.stranded.append(build)
            if controller.gone.are_cancelled:
                controller.timeline.after(_CANCELS_AFTER_SECONDS, lambda build=build: _cancel(controller, build))  # type: ignore[misc]
    computer.builds.clear()


def _cancel(controller: "Controller", build: Build) -> None:
    """End what is on no executor and in no queue (ExecutorStepExecution.AnomalousStatus)."""
    if build in controller.gone.stranded:
        _abort(controller, build, Stopper.CANCELLED_ITEM)


def _abort(controller: "Controller", build: Build, why: Stopper) -> None:
    if build.ended is not None:
        return
    for waiting in (controller.queue, controller.gone.stranded):
        if build in waiting:
            waiting.remove(build)
    build.stopped_by = why
    controller.kill(build)
