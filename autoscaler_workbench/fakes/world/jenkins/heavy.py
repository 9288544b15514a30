"""Jobs that the Heavy Job plugin gives a weight: a build takes as many executors of one node (version 1.1, from its source).

All but the first run a subtask of which Jenkins' API shows nothing but that the executor is busy. An item waits until as many are free at
once; light ones behind it begin meanwhile.
"""

from typing import TYPE_CHECKING

from autoscaler_workbench.fakes.world.jenkins.builds import Build
from autoscaler_workbench.fakes.world.jenkins.nodes import Node

if TYPE_CHECKING:
    from autoscaler_workbench.fakes.world.jenkins.controller import Controller


def fits(controller: "Controller", build: Build, node: Node) -> bool:
    """Tell whether a node has as many free executors as a build takes."""
    return node.room >= controller.heavy.get(build.job, 1)


def nothing_is_free(controller: "Controller", build: Build) -> bool:
    """Tell whether nothing else that asks for the same label can begin either: where a heavy build does not fit, a light one may."""
    return build.job not in controller.heavy and not controller.free_for(build)


def take(controller: "Controller", build: Build, node: Node) -> None:
    """Take the further executors of a build that begins."""
    free = (number for number in range(10**6) if number not in node.builds and number not in node.subtasks)
    for number, _ in zip(free, range(controller.heavy.get(build.job, 1) - 1), strict=False):
        node.subtasks[number] = build


def leave(build: Build, node: Node) -> None:
    """Give them back when it ends."""
    for number in [number for number, one in node.subtasks.items() if one is build]:
        del node.subtasks[number]
