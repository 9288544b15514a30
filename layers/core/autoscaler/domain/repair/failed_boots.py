"""Boots that failed: by what a pass does about them, and by their deadlines."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from autoscaler.domain.facts.plan import BootFailure, Cordon, DeleteNode, Forget, Held, Step, Terminate
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import Record, RecordState
from autoscaler.domain.repair.boot_causes import why_not_booted
from autoscaler.domain.repair.two_looks import Condition, is_fact
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.canary import never_connected, shows_that_it_boots
from autoscaler.domain.situation.connections import is_for_all_agents
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.trials import boots_counted


def failed_boots(situation: Situation, decided: Iterable[Step | Held]) -> tuple[BootFailure, ...]:
    """Name the boots that this pass ends or finds ended, and those whose time is over, each once."""
    memory = situation.memory
    by_id = {record.instance_id: record for record in situation.snapshot.records}
    by_node = {(record.controller, record.node): record for record in by_id.values()}
    decided = list(decided)
    counted, not_started = boots_counted(memory), _why_not_started(decided)
    failed = {record.instance_id: record for record in _failed(by_id, by_node, decided, memory.connected)}
    failed |= _over(situation)
    nodeless = _nodeless(decided)
    return tuple(
        BootFailure(
            controller=record.controller,
            pool=record.pool,
            instance_id=record.instance_id,
            why=_why(situation, record, not_started, node_gone=record.instance_id in nodeless),
            version=situation.versions.get(record.instance_id, ""),
            launched_at=record.began_at,
            launch=record.launch if not record.life else "",
            of_start=bool(record.life),
            beside=is_for_all_agents(record.trouble) or shows_that_it_boots(situation, record),
        )
        for record in failed.values()
        if record.instance_id not in counted and record.is_instance
    )


def _over(situation: Situation) -> dict[str, Record]:
    return {agent.record.instance_id: agent.record for agent in situation.agents if _is_over(situation, agent)}


def _nodeless(decided: Iterable[Step | Held]) -> set[str]:
    return {step.instance_id for step in decided if isinstance(step, Terminate) and step.reason is Reason.NODE_GONE}


def _why(situation: Situation, record: Record, not_started: Mapping[str, str], *, node_gone: bool) -> str:
    if why := record.trouble or not_started.get(record.instance_id):
        return why
    agent = next((agent for agent in situation.agents if agent.record.instance_id == record.instance_id), None)
    pool = agent.pool if agent else situation.fleet.pools.get(record.pool)
    return why_not_booted(record, agent, pool, situation.snapshot.end_reasons.get(record.machine, ""), node_gone=node_gone)


def _is_over(situation: Situation, agent: Agent) -> bool:
    """Tell whether two looks saw that an agent has not connected by its deadline: it counts, whatever keeps it from being terminated."""
    look = situation.memory.observations.get(agent.record.instance_id)
    if look is None or not is_fact(look, situation.now, situation.snapshot.request_id):
        return False
    late = agent.phase is Phase.LOST and never_connected(agent.record, situation.memory.connected)
    return (late and look.condition == Condition.LOST) or (agent.phase is Phase.OVERDUE and look.condition == Condition.OVERDUE)


def _why_not_started(decided: Iterable[Step | Held]) -> dict[str, str]:
    """Say what EC2 said of the starts that it ended, by instance id."""
    return {step.instance_id: step.detail for step in decided if isinstance(step, Terminate) and step.reason is Reason.START_FAILED}


def _was_to_come(record: Record) -> bool:
    """Tell whether it was on its way: what is stopped, and kept no longer, fails nothing."""
    return record.state is not RecordState.STOPPED


def _never_was_one(record: Record) -> bool:
    asked_for = record.state in {RecordState.REQUESTED, RecordState.STARTING}
    # EC2's announcement of its end may have condemned it before this pass.
    return asked_for or (record.state in {RecordState.REGISTERED, RecordState.CONDEMNED} and bool(record.trouble))


def _failed(
    by_id: dict[str, Record],
    by_node: dict[tuple[str, str | None], Record],
    decided: Iterable[Step | Held],
    connected: Collection[str],
) -> Iterator[Record]:
    for step in decided:
        match step:
            case Terminate(reason=Reason.BOOT_TIMEOUT) | Terminate(reason=Reason.START_FAILED) if _was_to_come(by_id[step.instance_id]):
                yield by_id[step.instance_id]
            case Terminate(reason=Reason.NODE_GONE) if never_connected(by_id[step.instance_id], connected):
                # Its node was never made, or was gone before it connected: the next one would fare as it did.
                yield by_id[step.instance_id]
            case Cordon(reason=Reason.BOOT_TIMEOUT):
                yield by_node[step.controller, step.node]
            case Forget() | DeleteNode() if step.instance_id in by_id and _never_was_one(by_id[step.instance_id]):
                # It ended before it was an agent: the bootstrap powers an instance off that cannot register.
                yield by_id[step.instance_id]
            case _:
                continue
