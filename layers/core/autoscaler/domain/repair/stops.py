"""Stops and starts that are under way, and those that a person made: what EC2 says of them, and what our record says."""

from collections.abc import Iterator

from autoscaler.domain.facts.plan import FinishStop, ForceStop, Held, Start, Terminate
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import Instance, InstanceState, RecordState
from autoscaler.domain.repair.two_looks import DISCONNECT_GRACE_SECONDS
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.deadlines import FORCED_SECONDS, STOPS_SECONDS
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.steps import hold_back, hold_unread, terminate

# EC2 tells when an instance was launched or started, by its own clock and to the second.
CLOCKS_DIFFER_SECONDS = 30.0
# Of one that a person stopped again, or of which EC2 says nothing.
_STOPPED_ON_PURPOSE = ("", "Client.UserInitiatedShutdown")
# Of one that EC2 had no machine for; any other code is about the instance itself, and would be the same the next time.
_NO_CAPACITY = "InsufficientInstanceCapacity"
# It is asked for in two or three looks: one answer may be lost, and EC2 needs minutes for it.
_FORCED_FOR_SECONDS = 150.0
_OFF = (InstanceState.STOPPING, InstanceState.STOPPED)


def is_off(agent: Agent) -> bool:
    """Tell whether EC2 says that an agent stops, or has stopped."""
    return agent.instance in _OFF


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
