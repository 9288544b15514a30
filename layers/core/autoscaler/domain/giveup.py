"""Giving up: when an agent, its node or its record may go. Two looks before anything that cannot be undone."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import ceil

from autoscaler.domain import cordons, looks, slots
from autoscaler.domain.agents import Agent, Phase
from autoscaler.domain.bound import uncordon
from autoscaler.domain.demand import starved_by_pool
from autoscaler.domain.failing import cannot_come_back, keeps_failing
from autoscaler.domain.looks import Condition, Seen
from autoscaler.domain.marks import MarkClass
from autoscaler.domain.memory import Look
from autoscaler.domain.model import CORDONED_LABEL
from autoscaler.domain.month_limit import comes_back
from autoscaler.domain.numbers import (
    DISCONNECT_GRACE_SECONDS,
    STUCK_TRY_AGAIN_SECONDS,
    SWEEP_AT_LEAST,
    SWEEP_SHARE,
)
from autoscaler.domain.plan import Adopt, Cordon, DeleteNode, Forget, FreeSlot, Held, Relabel, Terminate, Uncordon
from autoscaler.domain.quarantine import is_kept
from autoscaler.domain.reasons import Reason
from autoscaler.domain.retire import cordon
from autoscaler.domain.situation import Situation
from autoscaler.domain.snapshot import InstanceState
from autoscaler.domain.strangers import node_named_after, strangers_seen, take_in

_MARKED = (Phase.RETIRING, Phase.DRAINING)
_STOPPED = (InstanceState.STOPPING, InstanceState.STOPPED)


def what_is_seen(situation: Situation) -> dict[str, Seen]:
    """Name the condition of every agent, instance and node that may have to go; what cannot be believed is not named."""
    seen: dict[str, Seen] = {}
    believed = {view.name for view in situation.views() if not situation.no_giving_up(view.name)}
    for agent in situation.agents:
        if agent.record.controller in believed and (condition := _condition(situation, agent)):
            seen[agent.record.instance_id] = condition
    return seen | strangers_seen(situation)


def drained(situation: Situation, seen: Mapping[str, Look]) -> Iterator[Terminate | Cordon | Uncordon | Held]:
    """Give up agents that carry our mark, are idle and were idle in an earlier look, and that nothing is bound to."""
    starved = {view.name: starved_by_pool(situation.demands[view.name]) for view in situation.views()}
    for agent in situation.agents:
        if agent.phase not in _MARKED or agent.node is None or _stays(situation, agent):
            continue
        if is_kept(situation, agent):
            yield hold_back(agent, Reason.KEPT, f"{agent.node.name} is kept for a person to look at: resume it, or terminate its instance")
        elif _may_come_back(situation, agent) and not situation.stopped and starved.get(agent.record.controller, {}).get(agent.pool.name):
            yield hold_back(agent, Reason.DEMAND_IS_BACK, f"{agent.node.name} is kept: items wait for its pool")
        elif agent.by_labels:
            yield _seal(situation, agent, seen)
        elif not agent.idle:
            yield _still_busy(situation, agent)
        elif looks.is_settled(
            seen[agent.record.instance_id],
            agent.pool.drain_settle_seconds,
            situation.now,
            situation.snapshot.invocation,
        ):
            detail = f"{agent.node.name} is cordoned and was seen idle twice"
            yield terminate(agent, Reason.DRAINED, detail)
        else:
            yield hold_back(agent, Reason.SECOND_LOOK, f"{agent.node.name} is idle, waits for a second look")


def relabels(situation: Situation) -> Iterator[Relabel]:
    """Give nodes the labels that their records want, where a pass was cut off in between. A person's mark would be erased: hands off."""
    for agent in situation.agents:
        node, controller = agent.node, agent.record.controller
        if node is None or node.temporarily_offline or not agent.record.labels or cordons.are_as_wanted(agent.record, node):
            continue
        if not situation.no_giving_up(controller):
            yield Relabel(
                controller=controller,
                pool=agent.pool.name,
                node=node.name,
                instance_id=agent.record.instance_id,
                reason=Reason.LABELS_TAKEN if agent.record.cordon else Reason.LABELS_TO_GIVE_BACK,
                detail=f"the labels of {node.name} are not what its record says",
            )


def _stays(situation: Situation, agent: Agent) -> bool:
    bound = situation.protected(agent) or comes_back(situation, agent)
    return agent.instance_ended or bound or bool(situation.no_giving_up(agent.record.controller))


def _may_come_back(situation: Situation, agent: Agent) -> bool:
    """Tell whether demand counts on it: what cannot be brought back goes, so that another one may come in its place."""
    return agent.phase is Phase.RETIRING and not keeps_failing(cannot_come_back(situation.memory, agent))


def is_drain_overdue(situation: Situation, agent: Agent) -> bool:
    """Tell whether an agent has been draining for longer than its pool's operator finds right. It goes on; a person is told."""
    since, limit = situation.memory.draining_since.get(agent.record.instance_id), agent.pool.drain_timeout_seconds
    return since is not None and limit is not None and situation.now - since > limit


def repairs(situation: Situation, seen: Mapping[str, Look]) -> list[Terminate | DeleteNode | FreeSlot | Adopt | Cordon | Held]:
    """Repair what is not whole; a sweep over more than its share of a pool stops there."""
    kept: list[Terminate | DeleteNode | FreeSlot | Adopt | Cordon | Held] = []
    swept: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for agent in situation.agents:
        sizes[agent.pool.name] = sizes.get(agent.pool.name, 0) + 1
    for step in _repairs(situation, seen):
        if isinstance(step, Terminate | DeleteNode):
            swept[step.pool] = swept.get(step.pool, 0) + 1
            if swept[step.pool] > max(SWEEP_AT_LEAST, ceil(SWEEP_SHARE * sizes.get(step.pool, 0))):
                kept.append(Held(pool=step.pool, controller=step.controller, reason=Reason.SWEEP_LIMIT, detail=step.detail))
                continue
        kept.append(step)
    return kept


def unfinished(
    situation: Situation, seen: Mapping[str, Look]
) -> Iterator[Terminate | DeleteNode | FreeSlot | Cordon | Uncordon | Forget | Held]:
    """Go on with what was condemned: terminate again what still runs, give its node back, close its record."""
    for agent in situation.agents:
        if agent.phase is not Phase.CONDEMNED and not agent.instance_ended:
            continue
        record = agent.record
        node_gone = _is_node_gone(situation, agent)
        # What waits for the node of a machine that has ended waits in vain; only a machine that may still run is kept for it.
        bound = situation.protected(agent) and not agent.instance_ended
        if not node_gone and (situation.no_giving_up(record.controller) or bound):
            continue
        if agent.machine_gone and agent.phase is Phase.CONDEMNED and agent.node is not None and not node_gone:
            if record.controller in situation.fleet.slot_controllers:
                yield from slots.leave_slot(situation, agent, record.changed_at)
            else:
                yield delete_node(agent, agent.node.name, Reason.CONDEMNED)
        elif agent.instance_ended and node_gone:
            yield Forget(
                controller=record.controller,
                pool=record.pool,
                instance_id=record.instance_id,
                reason=Reason.INSTANCE_GONE,
                detail=f"{record.instance_id} and its node are gone",
            )
        elif agent.phase is Phase.CONDEMNED and agent.instance is not None and not agent.instance_ended:
            yield from _go_on(situation, agent, seen)


def _seal(situation: Situation, agent: Agent, seen: Mapping[str, Look]) -> Cordon | Uncordon | Held:
    """Mark an agent offline whose labels were taken, once it was idle in two looks and nothing that waits may start on it."""
    node, look = agent.node, seen.get(agent.record.instance_id)
    if node is None or agent.mark is None:
        raise ValueError(f"{agent.record.instance_id} has no labels that were taken")
    waits = (item.job for item in situation.snapshot.controllers[agent.record.controller].items if cordons.may_start_on(item, node))
    if not agent.idle:
        return _still_busy(situation, agent)
    if job := next(waits, None):
        return uncordon(agent, Reason.LABELS_TO_GIVE_BACK, f"{job} may start on {node.name} even without its labels")
    if look and looks.is_unlabelled_twice(look, agent.pool.drain_settle_seconds, situation.now):
        detail = f"the labels of {node.name} were taken, and it was idle in two looks since"
        return replace(cordon(situation, agent, agent.mark.kind, Reason.LABELS_TAKEN, detail), mark=agent.mark)
    return hold_back(agent, Reason.SECOND_LOOK, f"the labels of {node.name} were taken, it waits for a second look")


def _condition(situation: Situation, agent: Agent) -> Seen | None:  # noqa: C901, PLR0911 - a table, a line each
    session = situation.snapshot.controllers[agent.record.controller].session
    if agent.phase is Phase.CONDEMNED:
        if agent.by_labels and not agent.instance_ended:
            return _unlabelled(agent, session)
        at_rest = agent.node is not None and agent.node.offline and agent.idle and not agent.instance_ended
        return Seen(Condition.DRAINED, session) if at_rest else None
    if agent.instance_ended:  # what is shutting down keeps its node until it has terminated
        return Seen(Condition.ENDED) if agent.node is not None and agent.machine_gone else None
    if agent.instance in _STOPPED:
        return Seen(Condition.STOPPED, session)
    match agent.phase:
        case Phase.OVERDUE if not node_named_after(situation, agent.record.controller, agent.record.instance_id):
            return Seen(Condition.OVERDUE)
        case Phase.READY if agent.idle:
            return Seen(Condition.IDLE, session)
        case Phase.RETIRING | Phase.DRAINING if agent.by_labels:
            return _unlabelled(agent, session)
        case Phase.RETIRING | Phase.DRAINING if agent.idle:
            return Seen(Condition.DRAINED, session)
        case Phase.NODELESS:
            return Seen(Condition.NODELESS, session)
        case Phase.LOST:
            return Seen(Condition.LOST, session)
        case _:
            return None


def _unlabelled(agent: Agent, session: str) -> Seen | None:
    """Its labels are gone from the node itself, and it is idle."""
    gone = agent.node is not None and CORDONED_LABEL in agent.node.labels
    return Seen(Condition.UNLABELLED, session) if gone and agent.idle else None


def _repairs(  # noqa: C901 - one branch a kind of leak
    situation: Situation, seen: Mapping[str, Look]
) -> Iterator[Terminate | DeleteNode | FreeSlot | Adopt | Cordon | Held]:
    now, invocation = situation.now, situation.snapshot.invocation
    facts = {subject: look for subject, look in seen.items() if looks.is_fact(look, now, invocation)}
    for agent in situation.agents:
        fact = facts.get(agent.record.instance_id)
        match fact.condition if fact else None:
            case Condition.OVERDUE:
                yield terminate(agent, Reason.BOOT_TIMEOUT, f"not registered within {agent.pool.boot_timeout_seconds:g} s")
            case Condition.NODELESS:
                yield terminate(agent, Reason.NODE_GONE, _why_nodeless(agent))
            case Condition.STOPPED if agent.node is None or (agent.idle and not situation.protected(agent)):
                yield terminate(agent, Reason.INSTANCE_STOPPED, "it was stopped, an agent of ours never comes back from that")
            case Condition.ENDED if fact and agent.record.controller in situation.fleet.slot_controllers:
                yield from slots.leave_slot(situation, agent, fact.first_at)
            case Condition.ENDED if agent.node is not None:
                # A build that seems to run there, or waits for that very node, ended with its machine: its controller learns of it
                # only when the node is deleted, and would wait for ever.
                dead_long = fact is not None and now - fact.first_at >= DISCONNECT_GRACE_SECONDS
                if dead_long or (agent.idle and not situation.protected(agent)):
                    yield delete_node(agent, agent.node.name, Reason.INSTANCE_GONE)
            case Condition.LOST if fact and now - fact.first_at >= DISCONNECT_GRACE_SECONDS and not situation.protected(agent):
                # Quarantine, not retire: demand must not count on an agent that is not connected.
                yield cordon(situation, agent, MarkClass.QUARANTINE, *_why_lost(situation, agent, fact))
    yield from take_in(situation, facts)


def _why_nodeless(agent: Agent) -> str:
    if agent.record.trouble:
        return f"its node {agent.record.node} could not be made: {agent.record.trouble}"
    return f"its node {agent.record.node} is not there any more"


def _why_lost(situation: Situation, agent: Agent, fact: Look) -> tuple[Reason, str]:
    if agent.record.instance_id not in situation.memory.connected:
        trouble = f": {agent.record.trouble}" if agent.record.trouble else ""
        return Reason.BOOT_TIMEOUT, f"registered, and not connected within {agent.pool.boot_timeout_seconds:g} s{trouble}"
    return Reason.DISCONNECTED, f"disconnected for {(situation.now - fact.first_at) / 60:.0f} min"


def terminate(agent: Agent, reason: Reason, detail: str) -> Terminate:
    return Terminate(
        controller=agent.record.controller,
        pool=agent.pool.name,
        instance_id=agent.record.instance_id,
        node=agent.record.node,
        mark=agent.mark,
        reason=reason,
        detail=detail,
    )


def _is_node_gone(situation: Situation, agent: Agent) -> bool:
    """Tell whether nothing of an agent is left in Jenkins: its node is not there, or its slot is as it was before."""
    record, view = agent.record, situation.snapshot.controllers.get(agent.record.controller)
    if record.node is None:
        return True
    if view is None or not view.complete or record.node in view.unread:
        return False
    return agent.node is None or (record.controller in situation.fleet.slot_controllers and slots.is_slot_left(agent))


def _go_on(situation: Situation, agent: Agent, seen: Mapping[str, Look]) -> Iterator[Terminate | Cordon | Uncordon | Held]:
    """Go on with an agent that was given up and still runs. Whoever brought it online may have given it builds: it drains again."""
    look = seen.get(agent.record.instance_id)
    if agent.node is None:
        yield _terminate_again(situation, agent)
    elif agent.by_labels:
        yield _seal(situation, agent, seen)
    elif not agent.node.offline:
        yield cordon(situation, agent, MarkClass.RETIRE, Reason.CONDEMNED, "it was given up, and somebody brought its node online")
    elif agent.mark is None and agent.node.temporarily_offline:
        yield hold_back(
            agent, Reason.MARKED_BY_A_PERSON, f"{agent.node.name} was given up, and somebody marked it offline: {agent.node.reason}"
        )
    elif not agent.idle:
        yield _still_busy(situation, agent)
    elif look and looks.is_settled(look, agent.pool.drain_settle_seconds, situation.now, situation.snapshot.invocation):
        yield _terminate_again(situation, agent)
    else:
        yield hold_back(agent, Reason.SECOND_LOOK, f"{agent.node.name} is idle, waits for a second look")


def _terminate_again(situation: Situation, agent: Agent) -> Terminate | Held:
    """Go on terminating; what EC2 refuses, for a person to see, is asked for once an hour."""
    record, stuck = agent.record, situation.memory.stuck.get(agent.record.instance_id)
    if stuck is not None and situation.now - stuck.tried_at < STUCK_TRY_AGAIN_SECONDS:
        minutes = (situation.now - stuck.since_at) / 60
        return hold_back(agent, Reason.STUCK, f"EC2 has not let us terminate {record.instance_id} for {minutes:.0f} min: is it protected?")
    return terminate(agent, Reason.CONDEMNED, f"{record.instance_id} was given up and still runs")


def _still_busy(situation: Situation, agent: Agent) -> Held:
    jobs = ", ".join(sorted(build.job or "a build" for build in agent.node.builds)) if agent.node else ""
    if is_drain_overdue(situation, agent):
        minutes = (situation.now - situation.memory.draining_since[agent.record.instance_id]) / 60
        return hold_back(agent, Reason.DRAIN_OVERDUE, f"{agent.record.node} has been draining for {minutes:.0f} min, busy with {jobs}")
    return hold_back(agent, Reason.STILL_BUSY, f"{agent.record.node}: {agent.busy_executors} builds are not done")


def delete_node(agent: Agent, node: str, reason: Reason) -> DeleteNode:
    return DeleteNode(
        controller=agent.record.controller,
        pool=agent.pool.name,
        node=node,
        instance_id=agent.record.instance_id,
        fate=agent.instance or InstanceState.TERMINATED,
        though_busy=not agent.idle,
        reason=reason,
        detail=f"EC2 says that its instance {agent.record.instance_id} is gone",
    )


def hold_back(agent: Agent, reason: Reason, detail: str) -> Held:
    return Held(pool=agent.pool.name, controller=agent.record.controller, reason=reason, detail=detail)
