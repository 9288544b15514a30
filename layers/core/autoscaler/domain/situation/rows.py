"""Which row of the table of deadlines each agent is in, and since when."""

from collections.abc import Collection
from dataclasses import dataclass

from autoscaler.domain.facts.memory import InRow
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.snapshot import InstanceState, RecordState
from autoscaler.domain.situation import deadlines
from autoscaler.domain.situation.agents import FORGOTTEN_ASK_AGAIN_SECONDS, Agent, Phase
from autoscaler.domain.situation.deadlines import AGENT_ROWS, Row
from autoscaler.domain.situation.looks import EC2
from autoscaler.domain.situation.other_deadlines import FOREIGN, LEFT_THE_FILE
from autoscaler.domain.situation.situation import Situation

_OFF = (InstanceState.STOPPING, InstanceState.STOPPED)
_ON = (InstanceState.PENDING, InstanceState.RUNNING)
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
    if agent.instance in _OFF and agent.phase not in (Phase.UNSEEN, Phase.RESERVED):
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
