"""Node monitors that take nodes offline by themselves, look after look, and bring back what has recovered.

As hudson.node_monitors.AbstractNodeMonitorDescriptor does it: a monitor looks at a connected node some seconds after it came online, and
then once an hour. It leaves marked nodes alone (markOffline), and takes back only its own marks (markOnline).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from autoscaler_workbench.fakes.world.jenkins.nodes import Node

if TYPE_CHECKING:
    from autoscaler_workbench.fakes.world.jenkins.controller import Controller

DISK = "hudson.node_monitors.DiskSpaceMonitorDescriptor$DiskSpace"
CLOCK = "hudson.node_monitors.ClockMonitor$ClockDifferenceOfflineCause"
VERSION = "hudson.plugin.versioncolumn.JVMVersionMonitor$JVMMismatchCause"
FIRST_LOOK_SECONDS, LATER_LOOKS_SECONDS = 7.0, 3600.0


@dataclass(eq=False, slots=True, kw_only=True)
class NodeMonitor:
    """One monitor. ``minds``: whether a node is to be offline; ``cause``: the class of its mark; ``words``: its reason."""

    cause: str
    words: str
    minds: Callable[[Node], bool]
    first_seconds: float = FIRST_LOOK_SECONDS  # after a node has connected; 0: before it is given a build
    every_seconds: float = LATER_LOOKS_SECONDS
    brings_back: bool = True

    def look_at(self, node: Node, now: float) -> None:
        """Mark a node, or take the mark back."""
        if not node.connected:
            return
        if self.minds(node) and not node.temporarily_offline:
            node.temporarily_offline, node.cause, node.reason, node.cause_at, node.user = True, self.cause, self.words, now, ""
        elif self.brings_back and node.temporarily_offline and node.cause == self.cause and not self.minds(node):
            node.clear_mark()


def watch(controller: "Controller", monitor: NodeMonitor) -> NodeMonitor:
    """Let a monitor look at each node some seconds after it has connected, and at all of them now and then, from now on."""
    controller.node_monitors.append(monitor)
    look_at_all(controller, monitor)
    return monitor


def look_at_all(controller: "Controller", monitor: NodeMonitor) -> None:
    """Look at all nodes, and again after a while; not any more once it is not among the controller's monitors."""
    if monitor in controller.node_monitors:
        for node in list(controller.nodes.values()):
            monitor.look_at(node, controller.timeline.now)
        controller.schedule()
        controller.timeline.after(monitor.every_seconds, lambda: look_at_all(controller, monitor))


def came_online(controller: "Controller", name: str) -> None:
    """Let all monitors look at a node that has just connected."""

    def look(monitor: NodeMonitor) -> None:
        if monitor in controller.node_monitors and name in controller.nodes:
            monitor.look_at(controller.nodes[name], controller.timeline.now)

    for monitor in list(controller.node_monitors):
        if monitor.first_seconds:
            controller.timeline.after(monitor.first_seconds, lambda monitor=monitor: look(monitor))  # type: ignore[misc]
        else:
            look(monitor)
