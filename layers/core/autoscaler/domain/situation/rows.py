"""Which row of the table of deadlines each agent is in; and the pools, sides, hosts and reservations that are there no more."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from autoscaler.domain.facts.fleet import Fleet, Share
from autoscaler.domain.facts.memory import InRow, LeftPools, Memory
from autoscaler.domain.facts.metering import HOUR_SECONDS
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.pools import next_definitions
from autoscaler.domain.facts.snapshot import OFF, SIDE, Binding, InstanceState, Record, RecordState
from autoscaler.domain.situation import deadlines
from autoscaler.domain.situation.agents import FORGOTTEN_ASK_AGAIN_SECONDS, Agent, Phase
from autoscaler.domain.situation.canary import why_relabelled
from autoscaler.domain.situation.deadlines import AGENT_ROWS, FOREIGN, LEFT_THE_FILE, Row
from autoscaler.domain.situation.looks import EC2
from autoscaler.domain.situation.situation import Look, Situation

# Which row of the table of deadlines each agent is in, and since when.


_BY_NAME = {row.name: row for row in AGENT_ROWS}
_WITHOUT_AGENT = {InstanceState.SHUTTING_DOWN: deadlines.SHUTS_DOWN.name, InstanceState.FOREIGN: FOREIGN}
_HOST_AWAY = (Phase.REQUESTED, Phase.OVERDUE, Phase.CONNECTING, Phase.LOST)
_GIVEN_UP = {
    RecordState.CONDEMNED: deadlines.ENDS,
    RecordState.STOPPING: deadlines.STOPPING,
    RecordState.STOPPED: deadlines.STOPPED,
}
_OF_PHASE = {
    Phase.REQUESTED: deadlines.BOOTS,
    Phase.OVERDUE: deadlines.BOOTS,
    Phase.CONNECTING: deadlines.BOOTS,
    Phase.INTERRUPTED: deadlines.INTERRUPTED,
    Phase.UNSEEN: deadlines.UNSEEN,
    Phase.RESERVED: deadlines.RESERVED,
    Phase.NODELESS: deadlines.NODELESS,
    Phase.SET_ASIDE: deadlines.PERSON,
    Phase.MARKED: deadlines.MONITOR,
    Phase.LOST: deadlines.LOST,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What else decides in which row an agent is: whether a person keeps it, a build may be bound to it, and it refuses all jobs."""

    now: float = 0.0
    is_kept: bool = False
    is_bound: bool = False
    refuses: bool = False


def row_of(agent: Agent, circumstances: Circumstances) -> Row:
    """Find the one row that fits an agent: what EC2 says of its machine comes first, then its record, then its node."""
    if agent.instance_ended:
        return deadlines.NODE_LEFT if agent.machine_gone else deadlines.SHUTS_DOWN
    if (given_up := _GIVEN_UP.get(agent.record.state)) is not None:
        return _given_up(agent, given_up)
    if agent.phase is Phase.INTERRUPTED:
        return deadlines.INTERRUPTED
    if agent.record.state is RecordState.STARTING:
        return deadlines.STARTS
    if agent.instance in OFF and agent.phase not in (Phase.UNSEEN, Phase.RESERVED):
        return deadlines.BY_HAND
    if agent.record.is_host and agent.phase in _HOST_AWAY:
        return deadlines.HOST_AWAY
    if agent.record.state is RecordState.REQUESTED:
        return deadlines.BOOTS
    return _in_service(agent, circumstances)


def _given_up(agent: Agent, row: Row) -> Row:
    if agent.instance is None:
        return deadlines.MISSING
    if row is deadlines.STOPPED and agent.instance is not InstanceState.STOPPED:
        return deadlines.STOPPING if agent.instance is InstanceState.STOPPING else deadlines.BY_HAND
    return row


def _in_service(agent: Agent, circumstances: Circumstances) -> Row:
    if agent.phase in (Phase.DRAINING, Phase.RETIRING):
        return _marked_by_us(agent, circumstances)
    return _ready(agent, circumstances) if agent.phase is Phase.READY else _OF_PHASE[agent.phase]


def _marked_by_us(agent: Agent, circumstances: Circumstances) -> Row:
    if not agent.idle:
        return deadlines.DRAINS
    if circumstances.is_bound:
        return deadlines.BOUND
    if circumstances.is_kept or agent.record.is_host:
        return deadlines.KEPT
    return deadlines.ROTATES if agent.mark and agent.mark.kind is MarkClass.ROTATE else deadlines.DRAINED


def _ready(agent: Agent, circumstances: Circumstances) -> Row:
    if not agent.idle or (agent.node and agent.node.ended):
        return deadlines.WORKS
    if circumstances.refuses:
        return deadlines.REFUSES
    return deadlines.LENT if agent.record.is_lent(circumstances.now) else deadlines.IDLE


def circumstances_of(situation: Situation, agent: Agent) -> Circumstances:
    """Look up what decides the row of an agent beside itself."""
    free_node = situation.memory.free_nodes.get(f"{agent.record.controller}/{agent.record.node}")
    return Circumstances(
        now=situation.now,
        is_kept=agent.record.instance_id in situation.memory.kept,
        is_bound=situation.protected(agent),
        refuses=free_node is not None and free_node.is_useless,
    )


def next_rows(situation: Situation) -> dict[str, InRow]:
    """Carry on since when each agent is in its row. What EC2, or a controller, did not show in this look stays where it was."""
    before, rows = situation.memory.rows, dict[str, InRow]()
    for agent in situation.agents:
        name, past = agent.record.instance_id, before.get(agent.record.instance_id)
        row = row_of(agent, circumstances_of(situation, agent)).name
        is_unseen = row == deadlines.UNSEEN.name or _is_unseen(situation, agent)
        rows[name] = past if past is not None and (is_unseen or past.row == row) else InRow(row=row, since_at=situation.now)
    return rows | _rows_without_agents(situation, rows)


def _is_unseen(situation: Situation, agent: Agent) -> bool:
    """Tell whether EC2 did not show an agent's instance, and showed it a moment ago: its answers leave instances out now and then."""
    state, missing = situation.snapshot.states.get(agent.record.instance_id), situation.memory.missing.get(agent.record.machine)
    is_left_out = missing is not None and agent.instance is None and situation.now - missing.since_at < FORGOTTEN_ASK_AGAIN_SECONDS
    return state is None or is_left_out


def _rows_without_agents(situation: Situation, taken: Collection[str]) -> dict[str, InRow]:
    """Carry on since when agents have no controller any more, instances shut down whose records are closed, and others have our tags."""
    snapshot = situation.snapshot
    left = {record.instance_id: (LEFT_THE_FILE, record.pool) for record in snapshot.living if record.controller not in snapshot.controllers}
    pools = {instance.id: instance.pool for instance in snapshot.instances}
    ids = pools.keys() | {name for name, state in snapshot.states.items() if state is InstanceState.FOREIGN}
    others = {name: (row, pools.get(name, "")) for name in ids - {*taken} if (row := _WITHOUT_AGENT.get(snapshot.states[name]))}
    rows: dict[str, InRow] = {}
    for name, (row, pool) in (left | others).items():
        past = situation.memory.rows.get(name)
        since_at = past.since_at if past is not None and past.row == row else situation.now
        rows[name] = InRow(row=row, since_at=since_at, pool=pool)
    return rows


def row_named(name: str) -> Row | None:
    """Find a row by its name; None for one that this version does not have."""
    return _BY_NAME.get(name)


def seen_seconds(situation: Situation, agent: Agent, row: Row, since_at: float) -> float:
    """Count the seconds since then that count towards the deadline of a row."""
    return situation.seen_seconds(EC2 if row.by_ec2 else agent.record.controller, since_at)


# Agents whose pool left the fleet file, or does not serve their controller any more: which they are, and since when.


def next_left_pools(memory: Memory, look: Look) -> LeftPools:
    """Carry on the last definitions of pools, and since when agents have none.

    If more than half of the fleet's agents lose their pool within an hour, the file is more likely wrong than meant: nothing of it is
    drained for an hour.
    """
    before, now, snapshot = memory.left_pools, look.now, look.snapshot
    living = [agent for agent in look.agents if agent.record.is_instance and not agent.instance_ended]
    without_pool = [agent.record.instance_id for agent in living if is_left(agent)]
    since = {name: min(before.since.get(name, now), now) for name in without_pool}
    lately = sum(now - at < HOUR_SECONDS for at in since.values())
    is_new = since.keys() - before.since.keys()
    return LeftPools(
        definitions=next_definitions(before.definitions, look.fleet, snapshot.records, snapshot.intents, snapshot.instances),
        since=since,
        hold_until=now + HOUR_SECONDS if is_new and lately * 2 > len(living) else min(before.hold_until, now + HOUR_SECONDS),
    )


def is_left(agent: Agent) -> bool:
    """Tell whether the pool of an agent left the fleet file, or does not serve its controller any more."""
    return agent.pool.has_left


def is_controller_left(situation: Look, controller: str) -> bool:
    """Tell whether the fleet file does not name a controller any more: nobody sees its builds."""
    return controller not in situation.snapshot.controllers


def is_on_hold(situation: Situation, agent: Agent) -> bool:
    """Tell whether an agent without a pool is not drained yet, since most of the fleet's agents lost theirs at once."""
    return is_left(agent) and situation.now < situation.memory.left_pools.hold_until


# What of a machine is not to serve its controller any more: hosts and sides that left the fleet file, and sides that nobody can see.
#
# If a controller left the file, nobody sees the builds of its side. That side keeps its machine until the operator puts the controller
# back, or confirms with `autoscaler end` that nothing of it runs there.


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


# Hosts that are not connected, and since when.


def next_hosts_off(known: Mapping[str, float], look: Look) -> dict[str, float]:
    """Carry on since when each host of the fleet file is not connected to any controller, by name."""
    agents: dict[str, list[Agent]] = {}
    for agent in look.agents:
        agents.setdefault(agent.record.machine, []).append(agent)
    return {
        name: known.get(name, look.now)
        for name, host in look.fleet.hosts.items()
        if not any(map(_may_be_connected, agents.get(host.id, ())))
    }


def _may_be_connected(agent: Agent) -> bool:
    """Tell whether a host is connected; one that is marked offline may be, and nobody knows of one that could not be read."""
    return agent.phase is Phase.UNSEEN or (agent.node is not None and (not agent.node.offline or agent.node.temporarily_offline))


# Which people count on a machine that has ended, or was given up, under their reservation, and since when.


# People are told of such a machine for so long: `publish_metrics` may fail for some minutes.
LOST_SECONDS = 180.0
_ENDED = (deadlines.SHUTS_DOWN.name, deadlines.NODE_LEFT.name)


def lost_since(situation: Situation, agent: Agent) -> float | None:
    """Say since when an agent is given up, or its machine has ended, on which a person counts; None if nobody does, or it lives."""
    reservations, past = (agent.record.reservation, *agent.record.devices_for), situation.memory.rows.get(agent.record.instance_id)
    has_ended = past is not None and past.row in _ENDED  # `publish_metrics` does not ask EC2 for what has ended
    is_lost = has_ended or agent.instance_ended or agent.phase is Phase.CONDEMNED
    if not is_lost or all(reservation is None or reservation.is_over(situation.now) for reservation in reservations):
        return None
    return past.since_at if past and has_ended else situation.now
