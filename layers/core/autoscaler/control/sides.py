"""Machines that serve several controllers at once, and hosts: which records a machine has, and whether it is used on another side."""

from collections.abc import Iterable, Iterator, Mapping

from autoscaler.domain.facts.fleet import Fleet, Pool, Share
from autoscaler.domain.facts.nodes import read_mark
from autoscaler.domain.facts.snapshot import SIDE, Node, Record, RecordState
from autoscaler.ports import Controller


def side_id(machine: str, controller: str) -> str:
    """Return the id of the record of a machine's side on one more controller."""
    return f"{machine}{SIDE}{controller}"


def is_wanted(fleet: Fleet, record: Record) -> bool:
    """Tell whether a host, or a further side of an instance, is still to serve that controller."""
    pool = fleet.pools.get(record.pool)
    if pool is None or record.controller not in pool.controllers:
        return False
    at_once = pool.share is Share.COOPERATIVE
    if record.is_side:
        return at_once
    host = next((one for one in fleet.hosts.values() if one.id == record.machine), None)
    return host is not None and host.pool == pool.name and (record.instance_id == host.id) is not at_once


def used_elsewhere(controllers: Mapping[str, Controller], fleet: Fleet, records: Iterable[Record], record: Record) -> str | None:
    """Say where else a machine is used; None: its nodes on all other controllers are out of use, idle, or not there.

    By the node's name, which is the same everywhere, and not by records: one may have been lost.
    """
    if not record.is_instance:
        return None
    records = tuple(records)
    if unseen := next(_unseen(controllers, records, record), None):
        return f"{unseen} is not in the fleet file any more, so nobody knows what runs there"
    others = [(name, record.node) for name in sorted(_others(fleet, records, record))] if record.node is not None else []
    for name, node in (*others, *((left.controller, left.node) for left in record.leaves)):
        controller = controllers.get(name)
        if controller is None:
            return f"{name} is not in the fleet file any more, so nobody knows what runs there"
        if node is not None and (why := _why_used(controller.node(node), fleet)):
            return f"on {name} {why}"
    return None


def _unseen(controllers: Mapping[str, Controller], records: Iterable[Record], record: Record) -> Iterator[str]:
    """Name the controllers that nobody can ask, and on which the machine has a node, or had it when it began to leave."""
    mine = [one for one in records if one.machine == record.machine and one.state is not RecordState.GONE]
    bindings = [binding for one in mine for binding in (*(one.bindings if one.instance_id != record.instance_id else ()), *one.leaves)]
    yield from (binding.controller for binding in bindings if binding.node is not None and binding.controller not in controllers)


def _others(fleet: Fleet, records: Iterable[Record], record: Record) -> Iterator[str]:
    pool: Pool | None = fleet.pools.get(record.pool) or fleet.left_pools.get(record.pool)
    at_once = pool.controllers if pool and pool.share is Share.COOPERATIVE else ()
    recorded = [one.controller for one in records if one.machine == record.machine]
    yield from {*at_once, *recorded} - {record.controller}


def _why_used(node: Node | None, fleet: Fleet) -> str | None:
    if node is None:
        return None
    if not node.offline:
        return "its node is online"
    if node.temporarily_offline and read_mark(node.reason, fleet.name) is None:
        return f"somebody marked its node offline: {node.reason!r}"
    if not node.idle or node.builds:
        return "a build is on it"
    return None
