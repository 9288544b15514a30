"""Which label of a waiting job another cloud serves (`ignore_labels`), also where Jenkins names a node in its place."""

from collections.abc import Mapping

from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.snapshot import Node, QueueItem


def ignored_label(fleet: Fleet, nodes: Mapping[str, Node], item: QueueItem) -> str:
    """Return the label that another cloud serves; "" if the job is ours. ``nodes``: of its controller, by name.

    If one node alone has the label, Jenkins names that node and no label: the node of the other cloud has the label then.
    """
    if not fleet.ignored_labels:
        return ""
    asked = item.asked_label
    if asked is not None:
        return asked if fleet.ignores(asked) else ""
    names = {*item.wait.nodes, *filter(None, [item.wait.named])}
    theirs = [nodes[name] for name in names if name in nodes and fleet.ownership_label not in nodes[name].labels]
    labels = [_ignored_of(fleet, node) for node in theirs]
    return labels[0] if labels and len(theirs) == len(names) and all(labels) else ""


def _ignored_of(fleet: Fleet, node: Node) -> str:
    return next((label for label in sorted(node.labels - {node.name}) if fleet.ignores(label)), "")
