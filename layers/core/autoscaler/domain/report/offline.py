"""What people are told of a node that somebody took offline."""

from autoscaler.domain.facts.snapshot import Node


def told_offline(node: Node | None) -> str:
    """Say why a node is offline and, if Jenkins names the person, who took it offline; "" if Jenkins says neither."""
    if node is None or not node.offline or not (node.reason or node.offline_by):
        return ""
    reason = f"'{node.reason}'" if node.reason else "no reason given"
    return f"taken offline by {node.offline_by}: {reason}" if node.offline_by else f"offline, and not by us: {reason}"
