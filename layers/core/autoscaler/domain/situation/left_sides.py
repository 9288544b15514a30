"""What of a machine is not to serve its controller any more: hosts and sides that left the fleet file, and sides that nobody can see.

If a controller left the file, nobody sees the builds of its side. That side keeps its machine until the operator puts the controller
back, or confirms with `autoscaler end` that nothing of it runs there.
"""

from collections.abc import Iterator

from autoscaler.domain.facts.fleet import Fleet, Share
from autoscaler.domain.facts.snapshot import SIDE, Binding, Record, RecordState
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.canary import why_relabelled
from autoscaler.domain.situation.situation import Situation


def why_not_wanted(situation: Situation, agent: Agent) -> str | None:
    """Say why a host, or a side of a machine, is not to serve its controller any more; None if it is, and for any other agent."""
    record, pool = agent.record, agent.pool
    if record.is_host and not is_host_of(situation.fleet, record):
        return f"{record.machine} is no host of pool {record.pool} in the fleet file"
    if record.is_instance:
        return f"pool {pool.name} is of hosts now (hosts)" if pool.of_hosts and not pool.has_left else None
    if (record.instance_id == record.machine) is (pool.share is Share.COOPERATIVE):
        return f"pool {pool.name} has another share by now ({pool.share})"
    return _why_not_served(situation.fleet, agent) or (why_relabelled(agent, situation.fleet) if record.is_host else None)


def _why_not_served(fleet: Fleet, agent: Agent) -> str | None:
    """Say that a pool does not serve a controller any more, which is still in the fleet file."""
    controller, pool = agent.record.controller, agent.pool
    is_served = controller in pool.controllers or controller not in fleet.controllers
    return None if is_served else f"pool {pool.name} does not serve {controller} any more (controllers)"


def is_host_of(fleet: Fleet, record: Record) -> bool:
    """Tell whether the fleet file names a host as one of the pool of its record."""
    return any(host.id == record.machine and host.pool == record.pool for host in fleet.hosts.values())


def unseen_sides(situation: Situation, machine: str) -> Iterator[tuple[Record, Binding]]:
    """Find what a machine that also serves others is, or was when it began to leave, on controllers that left the fleet file."""
    if not situation.left_controllers:
        return
    records = [record for record in situation.snapshot.records if record.machine == machine and record.state is not RecordState.GONE]
    for record in records:
        is_one_of_several = len(records) > 1 or record.is_side or SIDE in record.instance_id
        for binding in (*(record.bindings if is_one_of_several else ()), *record.leaves):
            if binding.node is not None and binding.controller in situation.left_controllers:
                yield record, binding


def told_unseen(machine: str, binding: Binding) -> str:
    """Say which side of a machine nobody sees, and what a person can do."""
    way = f"put {binding.controller} back, or confirm that nothing of it runs there: autoscaler end {machine} --yes"
    return f"{binding.controller} left the fleet file, so nobody sees what runs on {binding.node} there; {way}"
