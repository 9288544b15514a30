"""Items that are handed to an executor: until it begins they are in the queue, as pending. Old versions forget those whose node goes then.

``hudson.model.Queue.maintain`` of 2.504.3: what is pending and on no executor any more "becomes buildable again", and what does that is
thrown away (core, pull request 10756). It was in no list then: it is unknown at once, where all else that leaves the queue is told of for
five minutes.
"""

from typing import TYPE_CHECKING

from autoscaler_workbench.fakes.world.jenkins.builds import Build, Kind
from autoscaler_workbench.fakes.world.jenkins.heavy import leave
from autoscaler_workbench.fakes.world.jenkins.nodes import Node

if TYPE_CHECKING:
    from autoscaler_workbench.fakes.world.jenkins.controller import Controller

# A version before 2.517, and a present one.
DROPS_BUILDS, CURRENT_VERSION = "2.504.3", "2.528.3"


def hand_over(controller: "Controller", build: Build, node: Node) -> None:
    """Hand an item to an executor, which takes a moment to begin."""
    node.handed.append(build)
    build.is_pending = True
    controller.timeline.after(controller.handing_seconds, lambda: _arrive(controller, build, node))


def take_back(controller: "Controller") -> None:
    """Make whatever is pending wait again, as a restart does."""
    for node in controller.nodes.values():
        for build in node.handed:
            build.is_pending = False
        node.handed.clear()


def drop(controller: "Controller", build: Build, node: Node) -> None:
    """Forget an item before it began. A pipeline waits for it for ever."""
    build.is_pending, build.is_dropped, build.started_at = False, True, None
    build.killed_by = build.killed_by or f"it was handed to {node.name} in the instant in which that went offline"
    if build in controller.queue:
        controller.queue.remove(build)
    for executor in [number for number, one in node.builds.items() if one is build]:
        del node.builds[executor]
    leave(build, node)
    if build.kind is Kind.FREESTYLE:
        controller.kill(build)


def _arrive(controller: "Controller", build: Build, node: Node) -> None:
    if build not in node.handed:
        return  # Jenkins was restarted meanwhile
    node.handed.remove(build)
    build.is_pending = False
    is_there = build in controller.queue  # nobody has cancelled it
    if is_there and controller.nodes.get(node.name) is node and not node.offline:
        controller.begin(build, node)
    elif is_there and controller.version == DROPS_BUILDS:
        drop(controller, build, node)
    controller.schedule()
