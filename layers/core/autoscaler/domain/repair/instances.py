"""Instances that do not come up, stop, start or end: what EC2 says of each in two looks, and what is done about it."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from autoscaler.domain.facts.fleet import Pool
from autoscaler.domain.facts.memory import Observation
from autoscaler.domain.facts.nodes import Mark, MarkClass, has_static_node
from autoscaler.domain.facts.plan import (
    BootFailure,
    Cordon,
    DeleteNode,
    FinishStop,
    ForceStop,
    Forget,
    Held,
    Start,
    Step,
    Terminate,
    Uncordon,
)
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import OFF, Instance, InstanceState, Record, RecordState
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.breakers import BY_EC2, MISSED, boots_counted, is_for_all_agents, of_taken_back
from autoscaler.domain.situation.canary import never_connected, shows_that_it_boots
from autoscaler.domain.situation.deadlines import FORCED_SECONDS, STOPS_SECONDS
from autoscaler.domain.situation.situation import Decided, Situation, hold_back, hold_unread, terminate, uncordon
from autoscaler.domain.wording import duration

# Two looks make a fact: conditions seen on agents, and since when without a gap.


# A WebSocket agent is back within seconds of a lost connection; a rebooting one within a few minutes.
DISCONNECT_GRACE_SECONDS = 300.0
# Repairs act on what two invocations saw, this far apart: DescribeInstances lags by up to 30 s.
SECOND_LOOK_SECONDS = 60.0


class Condition(StrEnum):
    """A condition of an agent, an instance or a node that may have to be removed."""

    IDLE = "idle"  # ready, connected and idle
    UNLABELLED = "unlabelled"  # its labels were taken, and idle
    DRAINED = "drained"  # carries our mark, and idle
    OVERDUE = "overdue"  # not registered by its boot deadline
    NODELESS = "nodeless"  # registered, and its node is not there
    LOST = "lost"  # disconnected
    STOPPED = "stopped"  # its instance was stopped, and not by us
    STARTED = "started"  # its instance runs, and was not started by us
    ENDED = "ended"  # its instance is gone, its node is not
    STRAY = "stray"  # an instance of ours without a record
    ORPHAN = "orphan"  # a node of ours without a record, whose instance is gone


@dataclass(frozen=True, slots=True)
class Seen:
    """A condition that this pass sees on one subject; ``session``: the controller's, "" where Jenkins is no witness."""

    condition: Condition
    session: str = ""


def next_observations(
    looks: Mapping[str, Observation], seen: Mapping[str, Seen], now: float, request_id: str, unread: Collection[str] = ()
) -> dict[str, Observation]:
    """Carry observations on, however far apart the looks are; a condition not seen this time, or in another session, starts again.

    ``unread``: subjects whose controller could not be read. A look that did not come ends nothing.
    """
    waiting = {subject: looks[subject] for subject in unread if subject in looks}
    return waiting | {subject: _next(looks.get(subject), now_seen, now, request_id) for subject, now_seen in seen.items()}


def is_settled(look: Observation, settle_seconds: float, now: float, request_id: str) -> bool:
    """Tell whether a drained agent may be terminated: idle when cordoned and after, or drained in two invocations."""
    if look.condition != Condition.DRAINED:
        return False
    if look.idle_before_at is not None and now - look.idle_before_at >= settle_seconds:
        return True
    return is_fact(look, now, request_id)


def is_unlabelled_twice(look: Observation, settle_seconds: float, now: float) -> bool:
    """Tell whether an agent without labels was idle in two looks since: builds handed to it before show by then."""
    return look.condition == Condition.UNLABELLED and now - look.first_at >= settle_seconds


def is_fact(look: Observation, now: float, request_id: str) -> bool:
    """Tell whether a condition is seen now and was seen in another invocation, long enough ago."""
    return look.last_at == now and look.request_id != request_id and now - look.first_at >= SECOND_LOOK_SECONDS


def _next(look: Observation | None, seen: Seen, now: float, request_id: str) -> Observation:
    idle_before_at: float | None = None
    if look is not None and look.session == seen.session:
        if look.condition == seen.condition:
            return replace(look, last_at=now)
        if look.condition in {Condition.IDLE, Condition.UNLABELLED} and seen.condition is Condition.DRAINED:
            idle_before_at = look.last_at
    return Observation(
        condition=seen.condition,
        first_at=now,
        last_at=now,
        request_id=request_id,
        session=seen.session,
        idle_before_at=idle_before_at,
    )


# Causes of failed boots, for people: EC2's words, Jenkins', those of the machine itself, or its deadline.


# EC2's own words say little: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/troubleshooting-launch.html
_BY_ITSELF = "Client.InstanceInitiatedShutdown"
_MEANS = {
    _BY_ITSELF: "it powered itself off",
    "Client.InternalError": "mostly because the KMS key of an encrypted volume may not be used",
    "Client.UserInitiatedShutdown": "somebody terminated it",
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


def why_not_booted(record: Record, agent: Agent | None, pool: Pool | None, code: str, *, node_gone: bool) -> str:
    """Say why a machine is no agent. ``code``: EC2's reason for its end, "" while it is there."""
    if record.trouble:
        return record.trouble
    if node_gone:
        return f"its node {record.node} was deleted before it connected"
    said = record.problem
    if agent is None or agent.instance_ended:
        # What powers itself off says before why: that it did is no cause.
        return said if said and code == _BY_ITSELF else "; ".join(filter(None, (told_end(code), said)))
    missed = "register" if record.registered_at is None else "connect"
    within = f" within {duration(pool.boot_timeout_seconds)}" if pool else " in time"
    return f"{MISSED}{missed}{within}" + (f": {said}" if said else "")


# Boots that failed: by what a pass does about them, and by their deadlines.


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


# Stops and starts that are under way, and those that a person made: what EC2 says of them, and what our record says.


# EC2 tells when an instance was launched or started, by its own clock and to the second.
CLOCKS_DIFFER_SECONDS = 30.0
# Of one that a person stopped again, or of which EC2 says nothing.
_STOPPED_ON_PURPOSE = ("", "Client.UserInitiatedShutdown")
# Of one that EC2 had no machine for; any other code is about the instance itself, and would be the same the next time.
_NO_CAPACITY = "InsufficientInstanceCapacity"
# It is asked for in two or three looks: one answer may be lost, and EC2 needs minutes for it.
_FORCED_FOR_SECONDS = 150.0


def is_off(agent: Agent) -> bool:
    """Tell whether EC2 says that an agent stops, or has stopped."""
    return agent.instance in OFF


def finish(situation: Situation, agent: Agent) -> Iterator[ForceStop | FinishStop | Terminate | Start | Held]:
    """Go on with one that EC2 says is off, once it has stopped."""
    instance = situation.instances.get(agent.record.instance_id)
    yield from _what_hangs(situation, agent)
    if instance is None or instance.state is not InstanceState.STOPPED:
        return
    if agent.record.state is RecordState.STARTING:
        if not situation.stopped_by(agent.pool.name):  # then nothing starts, and it is terminated
            yield _go_on_starting(situation, agent, instance)
    elif situation.no_giving_up(agent.record.controller) or _is_unread(situation, agent):
        yield hold_unread(agent)
    elif agent.node is None or is_unused(situation, agent) or situation.now - agent.record.changed_at >= DISCONNECT_GRACE_SECONDS:
        yield finish_stop(agent, Reason.HAS_STOPPED, f"EC2 says that {instance.id} has stopped; it can be started again")
    else:
        yield hold_back(agent, Reason.STILL_BUSY, f"{instance.id} has stopped, and something waits for its node {agent.record.node}")


def _what_hangs(situation: Situation, agent: Agent) -> Iterator[ForceStop | Terminate]:
    """Force a stop that we asked for and that does not end, then give the machine up. Nothing runs on it any more."""
    is_stopping = agent.record.state is RecordState.STOPPING and agent.instance is InstanceState.STOPPING
    may_be_judged = not situation.no_giving_up(agent.record.controller) and not _is_unread(situation, agent)
    if not (is_stopping and may_be_judged and (agent.node is None or is_unused(situation, agent))):
        return
    seconds, instance_id = situation.ec2_seen_seconds(agent.record.changed_at), agent.record.instance_id
    if seconds >= STOPS_SECONDS:
        yield terminate(agent, Reason.STOP_HANGS, f"EC2 says for more than {STOPS_SECONDS / 60:.0f} min that {instance_id} is stopping")
    elif FORCED_SECONDS <= seconds < FORCED_SECONDS + _FORCED_FOR_SECONDS:
        yield ForceStop(
            controller=agent.record.controller,
            pool=agent.pool.name,
            instance_id=instance_id,
            reason=Reason.STOP_FORCED,
            detail=f"EC2 says for more than {FORCED_SECONDS / 60:.0f} min that {instance_id} is stopping",
        )


def _is_unread(situation: Situation, agent: Agent) -> bool:
    """Tell whether its node is there and was not understood: then it is not known to be gone."""
    return agent.record.node in situation.snapshot.controllers[agent.record.controller].unread


def is_unused(situation: Situation, agent: Agent) -> bool:
    """Tell whether nothing runs on a node, and no build is bound to it."""
    return agent.idle and not situation.protected(agent)


def finish_stop(agent: Agent, reason: Reason, detail: str, failed: str = "") -> FinishStop:
    """Note that an agent has stopped. ``failed``: why it did not start."""
    return FinishStop(
        controller=agent.record.controller,
        pool=agent.pool.name,
        instance_id=agent.record.instance_id,
        node=agent.record.node if agent.node is not None and not agent.is_node_deleted else None,
        failed=failed,
        reason=reason,
        detail=detail,
    )


def start_again(agent: Agent, reason: Reason, detail: str) -> Start:
    """Start one agent that nothing is launched instead of: it was asked for before, or runs already."""
    return Start(
        controller=agent.record.controller,
        pool=agent.pool.name,
        instance_ids=(agent.record.instance_id,),
        keep_until=agent.record.keep_until,
        request=agent.record.started_for,
        otherwise=None,
        reason=reason,
        detail=detail,
    )


def _go_on_starting(situation: Situation, agent: Agent, instance: Instance) -> FinishStop | Terminate | Start:
    """Ask again for a start that EC2 does not show; give up one that has failed, and the instance that would not start the next time."""
    record, why = agent.record, instance.state_reason
    if instance.launched_at >= record.began_at - CLOCKS_DIFFER_SECONDS:
        detail = f"{instance.id} was to start, and has stopped again: {why or 'EC2 does not say why'}"
        if why in _STOPPED_ON_PURPOSE:
            return finish_stop(agent, Reason.START_FAILED, detail)
        if why.endswith(f".{_NO_CAPACITY}"):
            return finish_stop(agent, Reason.START_FAILED, detail, _NO_CAPACITY)
        return terminate(agent, Reason.START_FAILED, detail)
    if situation.ec2_seen_seconds(record.began_at) >= agent.pool.boot_timeout_seconds:
        return terminate(agent, Reason.START_FAILED, f"{instance.id} was to start, and EC2 shows it stopped still")
    return start_again(agent, Reason.START_AGAIN, f"{instance.id} was to start, and EC2 does not show that yet")


# EC2's announcements about one instance: an interruption, or a change of state.
#
# Its rebalance recommendations are not listened to: they come for most young spot instances, of which few are then interrupted.


class Announced(StrEnum):
    """What is announced."""

    INTERRUPTION = "interruption"  # a spot instance goes in two minutes
    STATE = "state"  # it ended, or was stopped; what EC2 says now counts, not what the event said


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceEvent:
    """One announcement."""

    kind: Announced
    instance_id: str


_ANNOUNCED = "EC2 took a machine of it back"
# EC2 has no machine. Other codes are about what was launched, such as a key or a disk that cannot be used (`Server.InternalError`):
# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_StateReason.html
_BY_EC2_ITSELF = frozenset(
    {"Server.SpotInstanceTermination", "Server.SpotInstanceShutdown", "Server.InsufficientInstanceCapacity", "Server.ScheduledStop"}
)
# Phases in which demand may count on an agent, or come to.
_STOPS_OR_STARTS = (RecordState.STOPPING, RecordState.STARTING)
_USABLE = {Phase.READY, Phase.CONNECTING, Phase.RETIRING, Phase.RESERVED, Phase.MARKED, Phase.INTERRUPTED}


def handle_event(situation: Situation, event: InstanceEvent) -> Iterator[Cordon | DeleteNode | FinishStop | Held]:
    """Cordon the interrupted agent at once; it is no supply any more, so demand replaces it. Finish a stop, or a start that failed."""
    for agent in situation.agents:
        if agent.record.machine != event.instance_id:
            continue
        if agent.phase is Phase.UNSEEN:
            yield Held(pool=agent.pool.name, controller=agent.record.controller, reason=Reason.INCOMPLETE, detail=str(agent.record.node))
        elif agent.instance_ended:
            yield from _clean_up(situation, agent)
        elif agent.record.state in _STOPS_OR_STARTS:
            # What is to be started again, or to be terminated since it never will start, is scale_down's to ask for.
            yield from (step for step in finish(situation, agent) if isinstance(step, FinishStop | Held))
        elif event.kind is Announced.INTERRUPTION and agent.phase in _USABLE and agent.node is not None:
            yield _cordon(situation, agent, agent.node.name)


def builds_at_risk(situation: Situation, event: InstanceEvent) -> tuple[str, ...]:
    """Name the builds that run on an instance which EC2 will interrupt."""
    if event.kind is not Announced.INTERRUPTION:
        return ()
    return tuple(
        build.job
        for agent in situation.agents
        if agent.record.machine == event.instance_id and agent.node is not None
        for build in agent.node.builds
    )


def cordon_interrupted(situation: Situation, controller: str, _decided: Decided) -> Iterator[Cordon | Uncordon]:
    """Cordon agents that EC2 takes back and that carry no mark yet; uncordon those that EC2 has not ended in time."""
    for agent in situation.agents:
        if agent.record.controller != controller or agent.node is None or agent.instance_ended:
            continue
        if agent.phase is Phase.INTERRUPTED:
            yield _cordon(situation, agent, agent.node.name)
        elif _was_not_ended(situation, agent):
            detail = f"EC2 announced {duration(situation.now - agent.record.interrupted_at)} ago that it takes it back, and has not"
            yield uncordon(agent, Reason.NOT_INTERRUPTED, detail)


def _was_not_ended(situation: Situation, agent: Agent) -> bool:
    """Tell whether an agent is out of use for an interruption that did not come. One that is idle goes as every drained one."""
    is_marked = agent.phase is Phase.DRAINING and agent.mark is not None and agent.mark.kind is MarkClass.INTERRUPTED
    was_announced = bool(agent.record.interrupted_at) and not agent.record.is_interrupted(situation.now)
    return is_marked and was_announced and agent.instance is InstanceState.RUNNING and not agent.idle


def taken_back(records: Iterable[Record], end_reasons: Mapping[str, str]) -> dict[str, str]:
    """Name the instances that EC2 took back, or had no machine for, and why. Nothing is wrong with their image or template."""
    announced = {record.instance_id: _ANNOUNCED for record in records if record.interrupted_at}
    codes = {record.instance_id: end_reasons.get(record.machine, "") for record in records}
    return announced | {instance_id: f"EC2 ended it: {code}" for instance_id, code in codes.items() if code in _BY_EC2_ITSELF}


def offerings_of(agent: Agent, instance: Instance | None) -> Iterator[str]:
    """Name the scopes of the offerings that an agent may be of. EC2 lists no subnet of an instance that has ended."""
    for offering in agent.pool.offerings:
        is_its_place = instance is None or (offering.market == instance.market and offering.subnet in {"", instance.subnet})
        if offering.instance_type == agent.record.instance_type and is_its_place:
            yield of_taken_back(agent.pool.name, offering.key)


def _cordon(situation: Situation, agent: Agent, node: str) -> Cordon:
    at_risk = f"{agent.busy_executors} builds are at risk" if agent.busy_executors else "it is idle"
    return Cordon(
        controller=agent.record.controller,
        pool=agent.pool.name,
        node=node,
        mark=Mark(fleet=situation.fleet.name, kind=MarkClass.INTERRUPTED, pass_id=situation.snapshot.pass_id),
        replaces=agent.mark,
        over_monitor=agent.phase is Phase.MARKED,
        reason=Reason.INTERRUPTED,
        detail=f"EC2 announced it for {agent.record.instance_id}; {at_risk}",
    )


def _clean_up(situation: Situation, agent: Agent) -> Iterator[DeleteNode | Held]:
    """Delete the node of an ended instance. Nodes with a build, or one bound to them, are left to the repairs."""
    controller = agent.record.controller
    reason = situation.no_giving_up(controller)
    if agent.node is None or agent.instance is None or not agent.machine_gone or has_static_node(agent.record):
        return  # it is not over yet, or a slot rests before it is free again: the schedule sees to that
    if reason or situation.protected(agent) or not agent.idle:
        yield Held(pool=agent.pool.name, controller=controller, reason=reason or Reason.STILL_BUSY, detail=agent.node.name)
        return
    yield DeleteNode(
        controller=controller,
        pool=agent.pool.name,
        node=agent.node.name,
        instance_id=agent.record.instance_id,
        fate=agent.instance,
        reason=Reason.INSTANCE_GONE,
        detail=f"EC2 says that {agent.record.instance_id} has ended",
    )
