"""Repair broken agents after two looks where that cannot be undone; a sweep over many stops by itself."""

from collections.abc import Iterator
from dataclasses import replace
from math import ceil

from autoscaler.domain.facts.fleet import CORDONED_LABEL, HELD_LABEL, Fleet
from autoscaler.domain.facts.memory import Observation
from autoscaler.domain.facts.nodes import (
    MarkClass,
    Room,
    are_as_wanted,
    beacon_labels,
    beacon_specs,
    class_of,
    has_static_node,
    is_held_as_wanted,
    is_of_host,
    room_on,
)
from autoscaler.domain.facts.orders import text_of
from autoscaler.domain.facts.plan import (
    Adopt,
    Cordon,
    CreateBeacon,
    DeleteNode,
    FinishStop,
    ForceStop,
    FreeSlot,
    Held,
    Relabel,
    RemoveBeacon,
    Start,
    Terminate,
    Uncordon,
)
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import OFF, ON, Instance, InstanceState, Node, Record, RecordState
from autoscaler.domain.repair.instances import DISCONNECT_GRACE_SECONDS, Condition, Seen, finish_stop, is_fact, is_unused, start_again
from autoscaler.domain.repair.orphans import leave_slot, node_named_after, take_in, unrecorded_seen
from autoscaler.domain.situation.agents import SWEEP_AT_LEAST, SWEEP_SHARE, Agent, Phase
from autoscaler.domain.situation.canary import never_connected, starts_late
from autoscaler.domain.situation.deadlines import STOPS_SECONDS
from autoscaler.domain.situation.distrust import Want
from autoscaler.domain.situation.rows import is_controller_left, why_not_wanted
from autoscaler.domain.situation.situation import (
    Decided,
    Situation,
    cordon,
    delete_node,
    hold_back,
    hold_unread,
    leaving,
    terminate,
    uncordon,
)
from autoscaler.domain.situation.warm_pool import may_be_stopped
from autoscaler.domain.wording import counted, duration, listed

Repair = Terminate | ForceStop | FinishStop | Start | DeleteNode | FreeSlot | Adopt | Cordon | Held


def keep_beacons(situation: Situation, controller: str, _decided: Decided) -> Decided:
    """Create missing beacons, so that the queue names labels, and delete those whose labels no pool gives any more."""
    view = situation.snapshot.controllers[controller]
    if not view.complete:
        return
    wanted = {spec.name: spec for spec in beacon_specs(situation.fleet, controller)}
    there = {node.name: node for node in view.nodes if situation.fleet.is_beacon(node.name)}
    for name, spec in wanted.items():
        if name not in there:
            yield CreateBeacon(controller=controller, spec=spec, reason=Reason.BEACON, detail=name)
    for name, node in there.items():
        given = frozenset(wanted[name].labels) - {name} if name in wanted else None
        is_right = given == beacon_labels(name, node.description, node.labels) and given <= node.labels
        if not is_right and _is_unused(node):
            yield RemoveBeacon(controller=controller, node=name, reason=Reason.BEACON_LEFT, detail=name)


def _is_unused(node: Node) -> bool:
    return node.offline and node.idle and not node.builds


_OURS_TO_STOP = (RecordState.STOPPING, RecordState.STOPPED, RecordState.STARTING)


def what_is_seen(situation: Situation) -> dict[str, Seen]:
    """Name the condition of every agent, instance and node that may have to be removed; doubtful ones are left out."""
    seen: dict[str, Seen] = {}
    believed = {view.name for view in situation.views() if not situation.no_giving_up(view.name)}
    for agent in situation.agents:
        if agent.record.controller in believed and (condition := _condition(situation, agent)):
            seen[agent.record.instance_id] = condition
    return seen | unrecorded_seen(situation)


def relabels(situation: Situation, decided: Decided) -> Iterator[Relabel]:
    """Restore labels of nodes after a pass that was cut off; let them have as many executors as builds fit, and no labels where none does.

    Never on a person's mark, which would be erased; and not where something else is done with a node's labels in this pass.
    """
    changed = {(step.controller, step.node) for step in decided if isinstance(step, Cordon)}
    for agent in situation.agents:
        if agent.node and (agent.record.controller, agent.node.name) not in changed and (step := _relabel(situation, agent, agent.node)):
            yield step


def relabels_for_holds(situation: Situation, controller: str, decided: Decided) -> Iterator[Relabel]:
    """Take labels that people hold, and give back those that nobody holds any more, before anything is launched for jobs that wait."""
    nodes = situation.snapshot.controllers[controller].nodes
    if not (situation.fleet.held_labels or any(HELD_LABEL in node.labels for node in nodes)):
        return
    changed = {step.node for step in decided if isinstance(step, Cordon | Uncordon) and step.controller == controller}
    for agent in situation.agents:
        if agent.record.controller == controller and agent.node and agent.node.name not in changed:
            yield from _for_holds(situation, agent, agent.node)


def _for_holds(situation: Situation, agent: Agent, node: Node) -> Iterator[Relabel]:
    is_right = agent.record.cordon or is_held_as_wanted(agent.record, node, situation.fleet, situation.now)
    if not is_right and (step := _relabel(situation, agent, node)):
        yield step


def _relabel(situation: Situation, agent: Agent, node: Node) -> Relabel | None:
    """Decide whether a node's labels and executors are set anew; None if they are as they are to be, or not ours to change."""
    fleet, record = situation.fleet, agent.record
    if not _may_be_relabelled(record, node, fleet) or (HELD_LABEL in node.labels and situation.overrides.are_unknown):
        return None
    heaviest = _heaviest(situation, agent)
    room = room_on(record, node, fleet, heaviest.weight if heaviest else 1)
    if are_as_wanted(record, node, fleet, situation.now, room) or situation.no_giving_up(record.controller):
        return None
    reason, detail = _why_relabelled(situation, agent, node, room, heaviest)
    return Relabel(
        controller=record.controller,
        pool=agent.pool.name,
        node=node.name,
        instance_id=record.instance_id,
        reason=reason,
        detail=detail,
        weight=heaviest.weight if heaviest else 1,
    )


def _may_be_relabelled(record: Record, node: Node, fleet: Fleet) -> bool:
    """Tell whether a node's labels and executors are ours to change; beside builds that have ended its executors cannot be counted."""
    is_unclear = bool(node.ended) and (bool(fleet.weights) or record.by_weight)
    return bool(record.labels) and not (node.temporarily_offline or is_unclear or node.is_deleted)


def _heaviest(situation: Situation, agent: Agent) -> Want | None:
    """Find the heaviest item that waits for an agent of this pool; None where none weighs more than an executor."""
    demand = situation.demands.get(agent.record.controller) if situation.fleet.weights else None
    wants = demand.wants if demand else ()
    held = situation.fleet.weights.of_running  # what Jenkins itself finds room for needs none kept
    mine = (want for want in wants if held(want.item.job) > 1 and any(pool.name == agent.pool.name for pool in want.pools))
    return max(mine, key=lambda want: want.weight, default=None)


def _why_relabelled(situation: Situation, agent: Agent, node: Node, room: Room | None, heaviest: Want | None) -> tuple[Reason, str]:
    is_without = bool(agent.record.cordon) or (room is not None and room.is_full)
    if not is_without and not is_held_as_wanted(agent.record, node, situation.fleet, situation.now):
        return _why_for_holds(situation, agent, node)
    if room is None or agent.record.cordon:
        reason = Reason.LABELS_TAKEN if agent.record.cordon else Reason.LABELS_TO_GIVE_BACK
        return reason, f"the labels of {node.name} are not what its record says"
    waits = f", and {heaviest.item.job}, which weighs {heaviest.weight}, waits" if heaviest else ""
    detail = f"the builds on {node.name} weigh {room.taken} of {room.of}{waits}"
    return (Reason.FULL, detail) if room.is_full else (Reason.HAS_ROOM, f"{detail}: {counted(room.executors, 'executor')}")


def _why_for_holds(situation: Situation, agent: Agent, node: Node) -> tuple[Reason, str]:
    taken = situation.fleet.held_labels.intersection(agent.record.labels)
    if taken:
        return (
            Reason.LABELS_HELD,
            f"{node.name} is without {listed(sorted(taken))}: {text_of(situation.overrides.holds_of(taken), situation.now)}",
        )
    return Reason.LABELS_RELEASED, f"nobody holds labels of {node.name} any more"


def repairs(situation: Situation, _decided: Decided) -> list[Repair]:
    """Repair broken agents; stop at a share of each pool."""
    kept: list[Repair] = []
    swept: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for agent in situation.agents:
        sizes[agent.pool.name] = sizes.get(agent.pool.name, 0) + 1
    for step in _repairs(situation):
        if isinstance(step, Terminate | DeleteNode):
            swept[step.pool] = swept.get(step.pool, 0) + 1
            if swept[step.pool] > max(SWEEP_AT_LEAST, ceil(SWEEP_SHARE * sizes.get(step.pool, 0))):
                kept.append(Held(pool=step.pool, controller=step.controller, reason=Reason.SWEEP_LIMIT, detail=step.detail))
                continue
        kept.append(step)
    return kept


def _condition(situation: Situation, agent: Agent) -> Seen | None:
    session = situation.snapshot.controllers[agent.record.controller].session
    if agent.instance_ended:
        return _ended(agent)
    if agent.phase is Phase.RESERVED:  # a person may stop it, disconnect it, or delete its node
        return _at_rest(agent, session) if agent.by_labels else None
    if agent.instance in OFF and agent.phase is not Phase.CONDEMNED:
        return None if agent.record.state in _OURS_TO_STOP else Seen(Condition.STOPPED, session)
    if agent.phase is Phase.LOST and agent.is_node_deleted:
        return None  # it has no node any more once Jenkins has ended what is on it
    return _at_rest(agent, session) if agent.phase in _OUT_OF_USE else _in_use(situation, agent, session)


def _in_use(situation: Situation, agent: Agent, session: str) -> Seen | None:
    match agent.phase:
        case Phase.STOPPED if agent.instance in ON:
            return Seen(Condition.STARTED)
        case Phase.OVERDUE | Phase.LOST if agent.record.is_host and not _has_left(situation, agent):
            return None  # it is off, or its network is: it comes back by itself, or a person sees to it
        case Phase.OVERDUE | Phase.REQUESTED:
            return Seen(Condition.OVERDUE) if _is_overdue(situation, agent) else None
        case Phase.READY if agent.idle:
            return Seen(Condition.IDLE, session)
        case Phase.NODELESS | Phase.LOST:
            return Seen(Condition(agent.phase), session)
        case _:
            return None


def _is_overdue(situation: Situation, agent: Agent) -> bool:
    """Tell whether a machine has had its time to register, or twice that of a start. It cannot before it has left another controller."""
    record = agent.record
    if record.leaves or not (agent.phase is Phase.OVERDUE or _starts_late(situation, agent)):
        return False
    return node_named_after(situation, record.controller, record.instance_id) is None


def _has_left(situation: Situation, agent: Agent) -> bool:
    """Tell whether a host is to be let go. One that still leaves a node on another controller is let go once that node is gone."""
    is_its_own = agent.node is None or is_of_host(situation.fleet, agent.record, agent.node)
    return is_its_own and why_not_wanted(situation, agent) is not None and not agent.record.leaves


_OUT_OF_USE = (Phase.CONDEMNED, Phase.STOPPING, Phase.RETIRING, Phase.DRAINING)


def _ended(agent: Agent) -> Seen | None:
    """Tell of an agent whose machine is gone that its node is left. One that is shutting down keeps its node until it has terminated."""
    left = agent.node is not None and agent.machine_gone and agent.phase is not Phase.CONDEMNED
    return Seen(Condition.ENDED) if left else None


def _at_rest(agent: Agent, session: str) -> Seen | None:
    """Tell of an agent out of use that it is idle: marked offline, or its labels are gone from the node itself."""
    if agent.node is None or not agent.idle:
        return None
    if agent.by_labels:
        return Seen(Condition.UNLABELLED, session) if CORDONED_LABEL in agent.node.labels else None
    return Seen(Condition.DRAINED, session) if agent.node.offline else None


def _repairs(situation: Situation) -> Iterator[Repair]:
    now, request_id = situation.now, situation.snapshot.request_id
    facts = {subject: look for subject, look in situation.memory.observations.items() if is_fact(look, now, request_id)}
    for agent in situation.agents:
        if fact := facts.get(agent.record.instance_id):
            yield from _repair(situation, agent, fact)
    yield from take_in(situation, facts)


def _repair(situation: Situation, agent: Agent, fact: Observation) -> Iterator[Repair]:
    """Repair one agent of which a condition was seen twice."""
    match fact.condition:
        case Condition.OVERDUE | Condition.LOST if agent.record.is_host:
            yield from _let_go_of_host(situation, agent)
        case Condition.OVERDUE:
            yield from _end_late_boot(agent)
        case Condition.NODELESS:
            yield terminate(agent, Reason.NODE_GONE, _why_nodeless(agent))
        case Condition.STARTED:
            yield start_again(agent, Reason.STARTED_BY_HAND, f"EC2 says that {agent.record.instance_id} runs")
        case Condition.STOPPED:
            yield from _take_stopped(situation, agent, fact)
        case Condition.ENDED:
            yield from _give_back_node(situation, agent, fact)
        case Condition.LOST if _is_given_up(situation, agent, fact) and not situation.protected(agent):
            # Quarantine, not retire: demand must not count on an agent that is not connected.
            yield cordon(situation, agent, MarkClass.QUARANTINE, *_why_lost(situation, agent, fact))


def _end_late_boot(agent: Agent) -> Iterator[Terminate]:
    """Terminate what did not register by its deadline. A start that is late has time until then."""
    if agent.phase is Phase.OVERDUE:
        reason, of = (Reason.START_FAILED, " of its start") if agent.record.life else (Reason.BOOT_TIMEOUT, "")
        yield terminate(agent, reason, f"not registered within {duration(agent.pool.boot_timeout_seconds)}{of}")


def _starts_late(situation: Situation, agent: Agent) -> bool:
    pool = situation.pools.get(agent.key)
    return pool is not None and starts_late(situation, agent, pool)


def _let_go_of_host(situation: Situation, agent: Agent) -> Iterator[Terminate | Cordon]:
    """Let go of a host that left the fleet file while it was off. Its node goes once it is drained, as that of any other host."""
    if not (why := why_not_wanted(situation, agent)):
        return
    if agent.phase is Phase.OVERDUE:
        yield terminate(agent, Reason.LEFT_THE_FILE, f"{why}, and it does not connect")
    elif not situation.protected(agent):
        yield cordon(situation, agent, MarkClass.OUTDATED, Reason.LEFT_THE_FILE, f"{why}, and it is not connected")


def _give_back_node(situation: Situation, agent: Agent, fact: Observation) -> Iterator[FreeSlot | DeleteNode | Cordon | Held]:
    """Give back the node of a machine that is gone.

    A build that seems to run there, or waits for that very node, ended with its machine: its controller learns of it only when the
    node is deleted, and would wait for ever.
    """
    if has_static_node(agent.record):
        yield from leave_slot(situation, agent, fact.first_at)
    elif agent.node is not None and (_is_old(situation, agent, fact) or is_unused(situation, agent)):
        yield delete_node(agent, agent.node.name, Reason.INSTANCE_GONE)


def _is_given_up(situation: Situation, agent: Agent, fact: Observation) -> bool:
    """Tell whether a lost agent has had its time: one that never connected has had it at its deadline."""
    never_was_one = agent.idle and never_connected(agent.record, situation.memory.connected)
    return never_was_one or _is_old(situation, agent, fact)


def _is_old(situation: Situation, agent: Agent, fact: Observation) -> bool:
    return situation.seen_seconds(agent.record.controller, fact.first_at) >= DISCONNECT_GRACE_SECONDS


def _may_be_started_for(situation: Situation, agent: Agent, fact: Observation) -> bool:
    """Tell whether something runs or waits on the node of a machine that a person stopped, and may go on once they start it.

    A build that is there keeps it. What only waits may wait for any agent of its kind, where Jenkins names the one that is there.
    """
    controller = agent.record.controller
    waits_in_vain = agent.idle and situation.seen_seconds(controller, fact.first_at) >= situation.fleet.resume_timeout(controller)
    return agent.node is not None and not is_unused(situation, agent) and not waits_in_vain


def _take_stopped(situation: Situation, agent: Agent, fact: Observation) -> Iterator[Terminate | FinishStop | Held]:
    """Keep what a person has stopped, where its pool keeps stopped agents; elsewhere it would never be an agent again."""
    if agent.phase is Phase.UNSEEN:
        yield hold_unread(agent)
    elif _may_be_started_for(situation, agent, fact):
        yield hold_back(agent, Reason.STILL_BUSY, f"somebody has stopped {agent.record.instance_id}, and its node is in use")
    elif agent.record.state is not RecordState.REGISTERED or not may_be_stopped(situation, agent):
        step = terminate(agent, Reason.INSTANCE_STOPPED, "it was stopped by somebody, and its pool keeps no stopped agents")
        yield replace(step, mark=None) if agent.by_labels else step  # then its node carries no mark to go by
    elif agent.instance is not InstanceState.STOPPED:
        if situation.ec2_seen_seconds(fact.first_at) >= STOPS_SECONDS:
            detail = f"EC2 says for more than {STOPS_SECONDS / 60:.0f} min that {agent.record.instance_id} is stopping"
            yield terminate(agent, Reason.STOP_HANGS, detail)
            return
        yield hold_back(agent, Reason.SECOND_LOOK, f"{agent.record.instance_id} is being stopped by somebody")
    else:
        yield finish_stop(agent, Reason.HAS_STOPPED, f"somebody has stopped {agent.record.instance_id}")


def _why_nodeless(agent: Agent) -> str:
    if agent.record.trouble:
        return f"its node {agent.record.node} could not be made: {agent.record.trouble}"
    return f"its node {agent.record.node} is not there any more"


def _why_lost(situation: Situation, agent: Agent, fact: Observation) -> tuple[Reason, str]:
    if agent.record.life_id not in situation.memory.connected:
        why = agent.record.trouble or agent.record.problem
        within = duration(agent.pool.boot_timeout_seconds)
        return Reason.BOOT_TIMEOUT, f"registered, and not connected within {within}" + (f": {why}" if why else "")
    return Reason.DISCONNECTED, f"disconnected for {duration(situation.now - fact.first_at)}"


# Uncordon at once agents that a build may be bound to: a build that waits for a cordoned agent waits forever.
#
# A mark that is only for now (retire) is undone for good. What was drained for good comes back only after a restart of its
# controller, while the pipeline that it held waits there by name: once that one has resumed, it is drained again. So does an agent that
# is only outdated, for any item that asks for it by name.


_DRAINED = (Phase.DRAINING, Phase.RESERVED)
# EC2 takes it away; what a limit of the month or the day stopped comes back with everything else that a build is bound to.
_OF_LIMITS = (MarkClass.MONTH_LIMIT, MarkClass.DAY_LIMIT)
_NOT_TO_RESUME = (MarkClass.INTERRUPTED, *_OF_LIMITS)


def pinned(situation: Situation, controller: str) -> list[Agent]:
    """Agents that come back whatever the queue needs.

    They carry our retire mark though a build may be bound to them (a queue item names it, or it was busy before a restart), or were
    stopped by the limit of a month or a day, which holds no more.
    """
    if not situation.snapshot.controllers[controller].complete:
        return []
    out_of_use = (agent for agent in situation.out_of_use if agent.record.controller == controller)
    return [agent for agent in out_of_use if (agent.phase is Phase.RETIRING and situation.protected(agent)) or comes_back(situation, agent)]


def bring_back_pinned(situation: Situation, controller: str, _decided: Decided) -> Iterator[Uncordon]:
    """Uncordon agents that a build is bound to."""
    for agent in pinned(situation, controller):
        if agent.record.node in situation.demands[controller].pins:
            yield uncordon(agent, Reason.PINNED, f"a queue item waits for {agent.record.node} by name")
        elif situation.protected(agent):
            yield uncordon(agent, Reason.BUSY_BEFORE_RESTART, f"{agent.record.node} may hold a build of before {controller} restarted")
        elif agent.mark and agent.mark.kind is MarkClass.DAY_LIMIT:
            yield uncordon(agent, Reason.NEW_DAY, "the hours of the day's limit are used no more")
        else:
            yield uncordon(agent, Reason.MONTH_LIMIT_LIFTED, "the month's limit holds no more")


def let_resume(situation: Situation, controller: str, _decided: Decided) -> Iterator[Uncordon]:
    """Temporarily uncordon drained agents that a build is bound to, except those that EC2 interrupts."""
    for agent in _of(situation, controller):
        if agent.phase not in _DRAINED or agent.mark is None or agent.mark.kind in _NOT_TO_RESUME:
            continue
        name = agent.record.node or ""
        if name not in situation.demands[controller].pins:
            continue
        if situation.waits_to_resume(agent):
            yield uncordon(agent, Reason.BUSY_BEFORE_RESTART, f"{name} was drained when {controller} restarted, its build waits for it")
        elif agent.mark.kind is MarkClass.OUTDATED and not agent.instance_ended:
            yield uncordon(agent, Reason.PINNED, f"a queue item waits for {name} by name, and no other agent can take it")


def drain_again(situation: Situation, controller: str, decided: Decided) -> Iterator[Cordon]:
    """Drain again the temporarily uncordoned agents whose builds have resumed. ``cordoned``: by this pass already."""
    taken = leaving(decided, controller)
    for agent in _of(situation, controller):
        owed = situation.memory.owed.get(agent.record.instance_id)
        if not owed or agent.phase is not Phase.READY or agent.record.node in taken:
            continue
        if not (situation.waits_to_resume(agent) or agent.record.node in situation.demands[controller].pins):
            detail = f"{agent.record.node} came back only for the build that waited for it"
            yield cordon(situation, agent, class_of(owed), Reason.DRAINED_BEFORE_RESTART, detail)


# What they are for cordons again by itself, for as long as it holds.
_AGAIN_BY_THEMSELVES = (*_OF_LIMITS, MarkClass.ROTATE, MarkClass.OUTDATED)


def note_owed(situation: Situation, decided: Decided) -> dict[str, str]:
    """Remember the class in which each of these agents is to be drained again."""
    back = {(step.controller, step.node) for step in decided if isinstance(step, Uncordon)}
    owed: dict[str, str] = {}
    for agent in situation.agents:
        known = situation.memory.owed.get(agent.record.instance_id)
        by_itself = agent.mark is not None and agent.mark.kind in _AGAIN_BY_THEMSELVES
        if agent.phase is Phase.DRAINING and agent.mark and not by_itself and (agent.record.controller, agent.record.node) in back:
            known = str(agent.mark.kind)
        if known:
            owed[agent.record.instance_id] = known
    return owed


def _of(situation: Situation, controller: str) -> list[Agent]:
    complete = situation.snapshot.controllers[controller].complete
    return [agent for agent in situation.agents if complete and agent.record.controller == controller]


def comes_back(situation: Situation, agent: Agent) -> bool:
    """Tell whether an agent that was stopped takes builds again: the limit holds no more, or a build is bound to it that must end."""
    if agent.phase is not Phase.DRAINING or agent.mark is None or agent.mark.kind not in _OF_LIMITS or agent.instance_ended:
        return False
    on_hold = bool(situation.overrides.holds_of_people_on(agent.record.controller, agent.pool.name))
    return situation.protected(agent) or not (situation.stopped_by(agent.pool.name) or on_hold)


# Controllers that left the fleet file: nobody sees their builds, so nothing of theirs is ended, and a person decides.


def left_controllers(situation: Situation, _decided: Decided) -> Iterator[Held]:
    """Name the agents, and the instances without a record, whose controller left the fleet file."""
    for agent in agents_unseen_for_ever(situation):
        name = agent.record.node or agent.record.instance_id
        yield hold_back(agent, Reason.NOT_OURS, f"{name} ({agent.record.instance_id}): {what_to_do(agent.record.controller)}")
    for instance in strays_unseen_for_ever(situation):
        detail = f"{instance.id} has no record: {what_to_do(instance.controller)}"
        yield Held(pool=instance.pool, controller=instance.controller, reason=Reason.NOT_OURS, detail=detail)


def agents_unseen_for_ever(situation: Situation) -> Iterator[Agent]:
    """Find the agents whose controller left the fleet file, and whose machine may still be there."""
    return (agent for agent in situation.agents if not agent.machine_gone and is_controller_left(situation, agent.record.controller))


def strays_unseen_for_ever(situation: Situation) -> Iterator[Instance]:
    """Find the instances without a record whose controller left the fleet file: they are not adopted."""
    recorded = {record.machine for record in situation.snapshot.records} | set(situation.snapshot.unread_records)
    for instance in situation.snapshot.instances:
        is_stray = instance.id not in recorded and not instance.state.ended and instance.launch not in situation.snapshot.unread_launches
        if is_stray and is_controller_left(situation, instance.controller):
            yield instance


def what_to_do(controller: str) -> str:
    """Say why it is kept, and what a person can do about it."""
    return f"its controller {controller} left the fleet file, so nobody sees its builds; put the controller back, or end the instance"
