"""What left the fleet file: pools, controllers, sides of machines and hosts; and which people lose the machine that they count on."""

from collections.abc import Iterator

from autoscaler.domain.facts.fleet import Fleet, Share
from autoscaler.domain.facts.memory import Memory
from autoscaler.domain.facts.metering import HOUR_SECONDS
from autoscaler.domain.facts.snapshot import SIDE, Binding, Record, RecordState, Reservation
from autoscaler.domain.situation import states
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.canary import why_relabelled
from autoscaler.domain.situation.situation import Look, Situation

# Agents whose pool left the fleet file, or does not serve their controller any more: which they are, and since when.


def left_pools(memory: Memory, look: Look) -> tuple[set[str], float]:
    """Name the agents whose pool has left, and say until when none of them is drained.

    If more than half of the fleet's agents lose their pool within an hour, the file is more likely wrong than meant: nothing of it is
    drained for an hour.
    """
    living = [agent for agent in look.agents if agent.record.is_instance and not agent.instance_ended]
    without_pool = {agent.record.instance_id for agent in living if agent.pool.has_left}
    since = [memory.agent(name).pool_left_at for name in without_pool]
    lately, until = sum(at is None or look.now - at < HOUR_SECONDS for at in since), look.now + HOUR_SECONDS
    return without_pool, until if None in since and lately * 2 > len(living) else min(memory.fleet.hold_until, until)


def is_controller_left(situation: Look, controller: str) -> bool:
    """Tell whether the fleet file does not name a controller any more: nobody sees its builds."""
    return controller not in situation.snapshot.controllers


def is_on_hold(situation: Situation, agent: Agent) -> bool:
    """Tell whether an agent without a pool is not drained yet, since most of the fleet's agents lost theirs at once."""
    return agent.pool.has_left and situation.now < situation.memory.fleet.hold_until


# What of a machine is not to serve its controller any more: hosts and sides that left the fleet file, and sides that nobody can see.
#
# If a controller left the file, nobody sees the builds of its side. That side keeps its machine until the operator puts the controller
# back, or confirms with `autoscaler end` that nothing of it runs there.


def why_not_wanted(situation: Situation, agent: Agent) -> str | None:
    """Say why a host, or a side of a machine, is not to serve its controller any more; None if it is, and for any other agent."""
    record, pool = agent.record, agent.pool
    if record.is_host and not any(host.id == record.machine and host.pool == record.pool for host in situation.fleet.hosts.values()):
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


# Hosts that are not connected, and since when.


def hosts_away(look: Look) -> set[str]:
    """Name the machines of the hosts of the fleet file that are not connected to any controller."""
    hosts = {host.id for host in look.fleet.hosts.values()}
    # One that is marked offline may be connected, and nobody knows of one that could not be read.
    connected = (a for a in look.agents if a.phase is Phase.UNSEEN or (a.node and (not a.node.offline or a.node.temporarily_offline)))
    return hosts - {agent.record.machine for agent in connected}


# Which people have a machine, or a device of it; and since when one has ended, or was given up, under their reservation.


def reserved_now(situation: Situation) -> Iterator[tuple[Agent, Reservation]]:
    """Name the agents that are reserved now, be they lost, and those of which people have devices, with their reservations."""
    for agent in situation.agents:
        people = (*agent.record.devices_for, agent.record.reservation)
        yield from ((agent, one) for one in people if one and not one.is_over(situation.now))


# People are told of such a machine for so long: `publish_metrics` may fail for some minutes.
LOST_SECONDS = 180.0


def lost_since(situation: Situation, agent: Agent) -> float | None:
    """Say since when an agent is given up, or its machine has ended, on which a person counts; None if nobody does, or it lives."""
    reservations, past = (agent.record.reservation, *agent.record.devices_for), situation.past(agent).state
    row = states.state_named(past.state if past else "")
    has_ended = row is not None and row.has_ended  # `publish_metrics` does not ask EC2 for what has ended
    is_there = not (has_ended or agent.instance_ended or agent.phase is Phase.CONDEMNED)
    if is_there or all(reservation is None or reservation.is_over(situation.now) for reservation in reservations):
        return None
    return past.since_at if past and has_ended else situation.now
