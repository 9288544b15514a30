"""Whose a node is: made by us for one agent, or a static one, which its operator made beforehand (`nodes: slots`).

The fleet file does not tell: it may have said something else when the agent took its node. The node's name does, since a node of ours is
named after its machine, and so does its description. What we did not make is never deleted, whatever the file says now.
"""

from autoscaler.domain.facts.fleet import Fleet, node_name
from autoscaler.domain.facts.node_descriptions import described_instance
from autoscaler.domain.facts.snapshot import Node, Record


def has_static_node(record: Record) -> bool:
    """Tell whether the node of an agent is its operator's: we neither named it nor gave it labels."""
    return record.node is not None and not record.labels and record.node != node_name(record.pool, record.machine)


def is_of_host(fleet: Fleet, record: Record, node: Node) -> bool:
    """Tell whether the node that has a host's name was made for that host: its name was chosen by a person, who may have used it before.

    The label of the fleet does not tell: static nodes have it, too.
    """
    return record.node_life is not None or described_instance(fleet, node.name, node.description) == record.machine


def is_made_for(fleet: Fleet, record: Record, node: Node) -> bool:
    """Tell whether the node of a host, or of a further side of a machine, was made for it: it is deleted with that alone."""
    return not has_static_node(record) and (record.is_side or is_of_host(fleet, record, node))


def takes_static_node(fleet: Fleet, record: Record) -> bool:
    """Tell whether an agent has, or is to take, a static node. One that has a node keeps it to its end.

    Hosts, and further sides of machines, take none, whatever the fleet file says meanwhile: they are not to be on such a controller, and
    leave it while their machine goes on.
    """
    return has_static_node(record) if record.node is not None else record.is_instance and record.controller in fleet.slot_controllers


def keeps_static_nodes_from_others(fleet: Fleet, record: Record) -> bool:
    """Tell whether an agent would keep a static node from others while it is stopped."""
    return has_static_node(record) or record.controller in fleet.slot_controllers


def is_made_by_us(fleet: Fleet, node: Node) -> bool:
    """Tell whether a node is one of our own, by its description or since it is a beacon."""
    return fleet.is_beacon(node.name) or described_instance(fleet, node.name, node.description) is not None


def why_of_other_kind(fleet: Fleet, record: Record) -> str | None:
    """Say that an agent has a static node where each is to get its own, or the other way round; None if it has what the file asks for."""
    if record.node is None or has_static_node(record) is (record.controller in fleet.slot_controllers):
        return None
    if has_static_node(record):
        return f"its node is a static one, and agents of {record.controller} get nodes of their own now (nodes: dynamic)"
    return f"its node was made for it, and agents of {record.controller} take static nodes now (nodes: slots)"
