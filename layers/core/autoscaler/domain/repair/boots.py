"""Boots that failed, and machines that EC2 took back: which they are, and why, in the words of EC2, Jenkins or the machine itself."""

from collections.abc import Iterable, Iterator, Mapping

from autoscaler.domain.facts.memory import Memory, Trial
from autoscaler.domain.facts.plan import BootFailure, Cordon, DeleteNode, Forget, Held, Step, Terminate
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import Record, RecordState
from autoscaler.domain.grouping import grouped
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.bets import BY_EC2, FAILED_KEPT, MISSED, Outcome, TrialOf, boots_counted, is_for_all_agents, places_of
from autoscaler.domain.situation.canary import never_connected, shows_that_it_boots
from autoscaler.domain.situation.situation import Look, Situation
from autoscaler.domain.situation.states import Condition, is_by_others, is_fact
from autoscaler.domain.wording import counted, duration, moment

# Causes of failed boots, for people: EC2's words, Jenkins', those of the machine itself, or its deadline.


# EC2's own words say little: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/troubleshooting-launch.html
_BY_ITSELF = "Client.InstanceInitiatedShutdown"
_MEANS = {
    _BY_ITSELF: "it powered itself off",
    "Client.InternalError": "mostly because the KMS key of an encrypted volume may not be used",
    "Client.UserInitiatedShutdown": "somebody stopped or terminated it",
    "Client.VolumeLimitExceeded": "the quota for volumes is used up",
    "Client.VolumeLimitExceeded.Iops": "the quota for volumes is used up",
    "Server.InternalError": "an error of EC2",
    "Server.ScheduledStop": "scheduled by EC2",
}


def told_end(code: str) -> str:
    """Say why EC2 shows an instance as ended, by EC2's code; "": it does not say."""
    if not code:
        return f"{BY_EC2}that it has ended, and not why"
    return f"{BY_EC2}{code}" + (f": {_MEANS[code]}" if code in _MEANS else "")


# Boots that failed: by what a pass does about them, and by their deadlines.


def failed_boots(situation: Situation, decided: Iterable[Step | Held]) -> tuple[BootFailure, ...]:
    """Name the boots that this pass ends or finds ended, and those whose time is over, each once."""
    memory = situation.memory
    by_id = {record.instance_id: record for record in situation.snapshot.records}
    by_node = {(record.controller, record.node): record for record in by_id.values()}
    decided = list(decided)
    have_counted = boots_counted(memory)
    ended = {step.instance_id: step for step in decided if isinstance(step, Terminate)}
    failed = {record.instance_id: record for record in _failed(by_id, by_node, decided, memory)}
    failed |= {agent.record.instance_id: agent.record for agent in situation.agents if _is_over(situation, agent)}
    return tuple(
        BootFailure(
            controller=record.controller,
            pool=record.pool,
            instance_id=record.instance_id,
            why=_why(situation, record, ended.get(record.instance_id)),
            version=situation.versions.get(record.instance_id, ""),
            launched_at=record.began_at,
            of_start=bool(record.life),
            beside=is_for_all_agents(record.trouble) or shows_that_it_boots(situation, record),
            places=() if record.life or is_for_all_agents(record.trouble) else places_of(record, situation.fleet, situation.instances),
        )
        for record in failed.values()
        if record.instance_id not in have_counted and record.is_instance
    )


def _why(situation: Situation, record: Record, end: Terminate | None) -> str:
    """Say why a machine is no agent."""
    if record.trouble:
        return record.trouble
    if end and end.reason is Reason.START_FAILED and end.detail:  # what EC2 said of the start
        return end.detail
    if end and end.reason is Reason.NODE_GONE:
        return f"its node {record.node} was deleted before it connected"
    agent = next((agent for agent in situation.agents if agent.record.instance_id == record.instance_id), None)
    said, code = record.problem, situation.snapshot.end_reasons.get(record.machine, "")
    if agent is None or agent.instance_ended:
        # What powers itself off says before why: that it did is no cause.
        return said if said and code == _BY_ITSELF else "; ".join(filter(None, (told_end(code), said)))
    missed = "register" if record.registered_at is None else "connect"
    return f"{MISSED}{missed} within {duration(agent.pool.boot_timeout_seconds)}" + (f": {said}" if said else "")


def _is_over(situation: Situation, agent: Agent) -> bool:
    """Tell whether two looks saw that an agent has not connected by its deadline: it counts, whatever keeps it from being terminated."""
    look = situation.past(agent).look
    if look is None or not is_fact(situation, look):
        return False
    late = agent.phase is Phase.LOST and never_connected(agent.record, situation.memory)
    return (late and look.condition == Condition.LOST) or (agent.phase is Phase.OVERDUE and look.condition == Condition.OVERDUE)


def _never_was_one(record: Record) -> bool:
    # EC2's announcement of its end may have condemned it before this pass.
    return record.state.is_asked_for or (record.state in {RecordState.REGISTERED, RecordState.CONDEMNED} and bool(record.trouble))


def _failed(
    by_id: dict[str, Record],
    by_node: dict[tuple[str, str | None], Record],
    decided: Iterable[Step | Held],
    memory: Memory,
) -> Iterator[Record]:
    for step in decided:
        match step:
            case Terminate(reason=Reason.BOOT_TIMEOUT | Reason.START_FAILED) if by_id[step.instance_id].state is not RecordState.STOPPED:
                # What is stopped, and kept no longer, fails nothing.
                yield by_id[step.instance_id]
            case Terminate(reason=Reason.NODE_GONE) if never_connected(by_id[step.instance_id], memory):
                # Its node was never made, or was gone before it connected: the next one would fare as it did.
                yield by_id[step.instance_id]
            case Cordon(reason=Reason.BOOT_TIMEOUT):
                yield by_node[step.controller, step.node]
            case Forget() | DeleteNode() if step.instance_id in by_id and _never_was_one(by_id[step.instance_id]):
                # It ended before it was an agent: the bootstrap powers an instance off that cannot register.
                yield by_id[step.instance_id]


# Machines that EC2 took back.


_ANNOUNCED = "EC2 took a machine of it back"
# EC2 needs the machine. Other codes are about what was launched, such as a key or a disk that cannot be used (`Server.InternalError`), or
# say that something was short, as an answer to the launch would:
# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_StateReason.html
_BY_EC2_ITSELF = ("Server.SpotInstanceTermination", "Server.SpotInstanceShutdown", "Server.ScheduledStop")


def ended_by_others(known: Mapping[str, Trial], look: Look) -> Iterator[Outcome]:
    """Name the agents of each pool that others have ended or stopped under us, with the jobs that ran there."""
    ended = (agent for agent in look.agents if is_by_others(look, agent))
    for scope, agents in grouped((TrialOf.ENDED.scope(agent.pool.name), agent) for agent in ended).items():
        before = known.get(scope)
        new = [agent for agent in agents if before is None or agent.record.instance_id not in before.failed]
        jobs = dict.fromkeys(before.said.split(", ") if before and before.said else ())
        jobs |= dict.fromkeys(job for agent in new for job in _jobs_on(look, agent))
        said = ", ".join([*jobs][-FAILED_KEPT:])
        for record in (agent.record for agent in new):
            yield Outcome(scope=scope, why=told_end(look.snapshot.end_reasons[record.machine]), name=record.instance_id, said=said)


def told_by_others(ended: Trial) -> str:
    """Say how many agents others have ended or stopped, why as far as EC2 says, and which jobs ran there."""
    jobs = f"; jobs whose builds ran there: {ended.said}" if ended.said else ""
    return (
        f"since {moment(ended.since_at)} {counted(ended.failures, 'agent')} ended or stopped, and not by the autoscaler: {ended.why}{jobs}"
    )


def _jobs_on(look: Look, agent: Agent) -> list[str]:
    """Name the jobs that run on an agent, or ran when builds were last counted: Jenkins may have ended them meanwhile."""
    learned = look.snapshot.learned.get(agent.record.controller)
    before = [sighting.job for sighting in learned.running.values() if sighting.node == agent.record.node] if learned else []
    return sorted({*before, *(build.job for build in agent.node.builds)} if agent.node else before)


def taken_back(records: Iterable[Record], end_reasons: Mapping[str, str]) -> dict[str, str]:
    """Name the instances that EC2 took back, and why. Nothing is wrong with their image or template."""
    announced = {record.instance_id: _ANNOUNCED for record in records if record.interrupted_at}
    codes = {record.instance_id: end_reasons.get(record.machine, "") for record in records}
    return announced | {instance_id: f"EC2 ended it: {code}" for instance_id, code in codes.items() if code in _BY_EC2_ITSELF}
