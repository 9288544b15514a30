"""Orders of people and announcements of EC2: launches, drains, resumes, purges, reservations, interruptions."""

from collections.abc import Callable, Iterator
from math import inf

from autoscaler.domain.facts.fleet import Fleet, Share
from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.orders import (
    MANUAL_PREFIX,
    CloseBreaker,
    DrainAll,
    DrainNodes,
    DrainSome,
    EndInstance,
    LaunchSome,
    Purge,
    Release,
    Reserve,
    Resume,
    Scope,
    asks_for,
)
from autoscaler.domain.facts.plan import CancelItem, FinishRotation, Held, Plan, Start, Step, Terminate
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import InstanceState, Reservation, Snapshot
from autoscaler.domain.launch.budget import Budget
from autoscaler.domain.launch.placement import QueuePlacement
from autoscaler.domain.launch.queue import with_floors
from autoscaler.domain.learn import assess, close_breaker, remember_request
from autoscaler.domain.lifecycle import Announced, InstanceEvent, handle_event
from autoscaler.domain.repair.nodes import relabels_for_holds, strays_unseen_for_ever
from autoscaler.domain.scale_in.reserved import idle_to_reserve, is_for_builds, reserve, why_not_reserved
from autoscaler.domain.scale_in.sides import confirmed_unseen, has_device, in_use_beside, release_device, reserve_device
from autoscaler.domain.scale_in.surplus import least_missed, why_left
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.left import is_controller_left, lost_since, reserved_now
from autoscaler.domain.situation.situation import Decided, Situation, cordon, end_reservation, hold_back, plan_of, uncordon, without_frozen
from autoscaler.domain.situation.wants import label_of
from autoscaler.domain.wording import end_command

_UNDONE_BY_A_PERSON = {MarkClass.OPERATOR, MarkClass.QUARANTINE, MarkClass.MONITOR}
# What a monitor took offline may be drained as well: then it ends once idle, whatever the monitor says.
_MAY_BE_DRAINED = {Phase.READY, Phase.MARKED}


def launch_some(snapshot: Snapshot, fleet: Fleet, order: LaunchSome) -> Plan:
    """Decide a person's launch: within the limits, and once per request id."""
    situation = assess(snapshot, fleet)
    pool = situation.fleet.pools[order.pool]
    controller = order.controller or pool.controllers[0]
    intent_id = f"{MANUAL_PREFIX}{order.request_id}" if order.request_id else None
    if intent_id and _was_done(situation, order.request_id, intent_id):
        held = Held(pool=pool.name, controller=controller, reason=Reason.ALREADY_DONE, detail=f"request {order.request_id}")
        return plan_of(situation, [held])
    purchase, view = QueuePlacement(situation, controller, Budget(situation)).purchase, situation.pools[controller, pool.name].for_a_person
    planned = sum(purchase.buy(view, Reason.MANUAL, order.reason) for _ in range(order.count))
    decided: list[Step | Held] = [*purchase.steps(keep_until=situation.now + order.keep_seconds, intent_id=intent_id)]
    decided += purchase.held.values()
    if planned < order.count:
        detail = f"{planned} of {order.count} asked for"
        decided.append(Held(pool=pool.name, controller=controller, reason=Reason.FEWER_THAN_ASKED, detail=detail))
    decided = without_frozen(situation, decided)
    starts = any(isinstance(step, Start) for step in decided)
    return plan_of(situation, decided, remember_request(situation, order.request_id) if starts else None)


def _was_done(situation: Situation, request_id: str | None, intent_id: str) -> bool:
    """Tell whether a request has launched or started agents before."""
    asked = {intent.id for intent in situation.snapshot.intents} | {record.started_for for record in situation.snapshot.records}
    return intent_id in asked or request_id in situation.memory.requests


def drain_for_a_person(snapshot: Snapshot, fleet: Fleet, order: DrainSome | DrainNodes | DrainAll) -> Plan:
    """Decide a person's drain: cordons that demand does not lift; the schedule terminates the agents when idle."""
    situation = assess(snapshot, fleet)
    if order.request_id in situation.memory.requests:
        return plan_of(situation, [Held(pool="", reason=Reason.ALREADY_DONE, detail=f"request {order.request_id}")])
    agents, held = _to_drain(situation, order)
    decided: list[Step | Held] = [*held]
    for agent in agents:
        if reason := situation.no_giving_up(agent.record.controller):
            decided.append(hold_back(agent, reason, str(agent.record.node)))
        else:
            decided.append(cordon(situation, agent, MarkClass.OPERATOR, Reason.MANUAL, order.reason))
    return plan_of(situation, without_frozen(situation, decided), remember_request(situation, order.request_id))


def reserve_for_a_person(snapshot: Snapshot, fleet: Fleet, order: Reserve) -> Plan:
    """Decide which agent a person gets: an idle one, or one that is started or launched for them; within the limits, once per request."""
    situation = assess(snapshot, fleet)
    reservation = Reservation(
        person=order.person,
        reason=order.reason,
        by=order.by,
        since_at=situation.now,
        until_at=situation.now + order.seconds,
        request=order.request_id,
    )
    if _was_reserved(situation, order.request_id):
        return plan_of(situation, [Held(pool="", reason=Reason.ALREADY_DONE, detail=f"request {order.request_id}")])
    decided = without_frozen(situation, _reserving(situation, order)(situation, order, reservation))
    done = any(not isinstance(step, Held) for step in decided)
    return plan_of(situation, decided, remember_request(situation, order.request_id) if done else None)


def _reserving(situation: Situation, order: Reserve) -> Callable[[Situation, Reserve, Reservation], Decided]:
    """Choose how a person gets what they name: a device, any agent of a pool, or this one."""
    agent, pool = _agent_named(situation, order.target), situation.fleet.pools.get(order.target)
    named = pool or (agent.pool if agent else None)
    if named is not None and (named.share is Share.COOPERATIVE or has_device(situation, order.person, order.target)):
        return reserve_device
    return _reserve_any if pool else _reserve_named


def _was_reserved(situation: Situation, request_id: str) -> bool:
    """Tell whether a request has reserved an agent before, be it gone since."""
    records, intents = situation.snapshot.records, situation.snapshot.intents
    of_devices = (one for record in records for one in record.devices_for)
    found = {one.request for one in (*(r.reservation for r in records), *(i.reservation for i in intents), *of_devices) if one}
    return request_id in found or _was_done(situation, request_id, f"{MANUAL_PREFIX}{request_id}")


def _reserve_any(situation: Situation, order: Reserve, reservation: Reservation) -> list[Step | Held]:
    """Reserve an idle agent of a pool; where none may be taken, start or launch one, after what its builds' minimum takes."""
    pool = situation.fleet.pools[order.target]
    if agent := idle_to_reserve(situation, pool.name, order.controller):
        return [reserve(situation, agent, reservation, though_busy=False)]
    controller = order.controller or pool.controllers[0]
    if problem := situation.snapshot.controllers[controller].problem:
        detail = f"whether an agent is idle on {controller} could not be read: {problem}"
        return [Held(pool=pool.name, controller=controller, reason=Reason.INCOMPLETE, detail=detail)]
    budget = with_floors(situation)
    budget.to_begin.clear()  # a person gets what has been tried
    purchase, view = QueuePlacement(situation, controller, budget).purchase, situation.pools[controller, pool.name].for_a_person
    purchase.note_waiting(view, inf)  # EC2 takes a spot instance from under a person; patience for one is over here
    purchase.buy(view, Reason.RESERVED, f"for {order.person}: {order.reason}")
    held = list(purchase.held.values())
    if held and pool.min_agents and is_for_builds(situation, pool.name):
        detail = f"{pool.name} keeps its agents for builds up to min_agents ({pool.min_agents}), and another one cannot be launched"
        held.append(Held(pool=pool.name, controller=controller, reason=Reason.CI_FIRST, detail=detail))
    return [*purchase.steps(intent_id=f"{MANUAL_PREFIX}{order.request_id}", reservation=reservation), *held]


def _reserve_named(situation: Situation, order: Reserve, reservation: Reservation) -> list[Step | Held]:
    """Reserve the agent that is named, or change when the same person's reservation of it ends."""
    agent = _agent_named(situation, order.target)
    if agent is None:
        return [Held(pool="", reason=Reason.NOT_FOUND, detail=f"{order.target} is no pool of this fleet, and no agent of it")]
    known = agent.record.reservation
    if known and not known.is_over(situation.now):
        if known.person != order.person:
            return [hold_back(agent, Reason.RESERVED, f"{order.target} is reserved for {known.person}: {known.reason}")]
        return [end_reservation(agent, reservation.until_at, Reason.RESERVED, f"for {known.person}, as {order.by} asked: {order.reason}")]
    if agent.pool.has_left:
        return [hold_back(agent, Reason.POOL_LEFT, f"{agent.record.node or order.target} drains: {why_left(situation, agent)}")]
    if why := why_not_reserved(situation, agent):
        return [hold_back(agent, *why)]
    return [reserve(situation, agent, reservation, though_busy=True)]


def _agent_named(situation: Situation, name: str) -> Agent | None:
    return next((agent for agent in situation.agents if name in {agent.record.node, agent.record.instance_id}), None)


def release_for_a_person(snapshot: Snapshot, fleet: Fleet, order: Release) -> Plan:
    """Decide the end of a reservation: now. The agent is terminated as every drained one."""
    situation = assess(snapshot, fleet)
    if (of_devices := release_device(situation, order)) is not None:
        return plan_of(situation, without_frozen(situation, of_devices))
    agent = _agent_named(situation, order.target)
    reservation = agent.record.reservation if agent else None
    if agent is None or reservation is None or reservation.is_over(situation.now):
        return plan_of(situation, [Held(pool="", reason=Reason.NOT_FOUND, detail=f"{order.target} is no agent that is reserved")])
    if order.person not in {None, reservation.person}:
        detail = f"{order.target} is reserved for {reservation.person}, not for {order.person}: {reservation.reason}"
        return plan_of(situation, [hold_back(agent, Reason.RESERVED, detail)])
    step = end_reservation(agent, situation.now, Reason.MANUAL, f"it was reserved for {reservation.person}; {order.reason}")
    return plan_of(situation, without_frozen(situation, [step]))


def end_for_a_person(snapshot: Snapshot, fleet: Fleet, order: EndInstance) -> Plan:
    """Decide the end of an instance that nobody sees any more, since its controller left the fleet file. Every other one is drained.

    A reservation must be released first.
    """
    situation = assess(snapshot, fleet)
    steps: list[Step | Held] = [*confirmed_unseen(situation, order.target, order.reason)] or [_end(situation, order)]
    ended = {step.instance_id for step in steps if isinstance(step, FinishRotation | Terminate)}
    had = [(agent, one) for agent, one in reserved_now(situation) if ended & {agent.record.instance_id, agent.record.machine}]
    kept = [
        hold_back(agent, Reason.RESERVED, f"it is reserved for {one.person}: {one.reason}; autoscaler release {agent.record.node}")
        for agent, one in had
        if lost_since(situation, agent) is None
    ]
    return plan_of(situation, without_frozen(situation, kept or steps))


def _end(situation: Situation, order: EndInstance) -> Terminate | Held:
    agents = [agent for agent in situation.agents if order.target in {agent.record.machine, agent.record.node} and not agent.machine_gone]
    unseen = [agent for agent in agents if is_controller_left(situation, agent.record.controller)]
    if unseen and len({agent.record.machine for agent in agents}) == 1 and not agents[0].record.is_host:
        return _end_agent(situation, [agent for agent in agents if agent not in unseen], unseen[0], order)
    return _drain_instead(agents[0]) if agents and not unseen else _end_stray(situation, order)


def _end_stray(situation: Situation, order: EndInstance) -> Terminate | Held:
    for instance in strays_unseen_for_ever(situation):
        if order.target in {instance.id, instance.node}:
            return _end_now(instance.controller, instance.pool, instance.id, order)
    is_foreign = situation.snapshot.states.get(order.target) is InstanceState.FOREIGN
    hint = f"to end it: {end_command([order.target])}" if is_foreign else "give its instance id"
    return Held(pool="", reason=Reason.NOT_FOUND, detail=f"{order.target} is no instance of this fleet; {hint}")


def _end_agent(situation: Situation, seen: list[Agent], unseen: Agent, order: EndInstance) -> Terminate | Held:
    """End a machine unless builds may use it on a controller of the fleet file. ``seen``: its sides on such controllers."""
    if seen and (used := next(in_use_beside(situation, unseen), None)):
        detail = f"{used}; it may be ended once it is drained there: autoscaler drain {seen[0].record.node}"
        return hold_back(seen[0], Reason.USED_ELSEWHERE, detail)
    return _end_now(unseen.record.controller, unseen.record.pool, unseen.record.machine, order)


def _drain_instead(agent: Agent) -> Held:
    name, controller = agent.record.node or agent.record.instance_id, agent.record.controller
    detail = f"{name} serves {controller}, which is in the fleet file and sees its builds: run autoscaler drain {name}"
    return hold_back(agent, Reason.STILL_SEEN, detail)


def _end_now(controller: str, pool: str, machine: str, order: EndInstance) -> Terminate:
    return Terminate(
        controller=controller,
        pool=pool,
        instance_id=machine,
        node=None,  # nobody can read it
        mark=None,
        reason=Reason.MANUAL,
        detail=f"{controller} left the fleet file; {order.reason}",
    )


def relabel_for_holds(snapshot: Snapshot, fleet: Fleet) -> Plan:
    """Take labels that people hold, and give back those that nobody holds any more."""
    situation = assess(snapshot, fleet)
    return plan_of(situation, without_frozen(situation, [*_for_holds(situation, ())]))


def _for_holds(situation: Situation, decided: Decided) -> Iterator[Step]:
    for controller in situation.snapshot.controllers:
        yield from relabels_for_holds(situation, controller, decided)


def bring_back_for_a_person(snapshot: Snapshot, fleet: Fleet, order: Resume) -> Plan:
    """Decide which operator and quarantine cordons to lift; interrupted and outdated agents stay cordoned."""
    situation = assess(snapshot, fleet)
    back = [
        uncordon(agent, Reason.MANUAL, order.reason)
        for agent in situation.agents
        if agent.phase is Phase.DRAINING and agent.mark and agent.mark.kind in _UNDONE_BY_A_PERSON
        if _is_meant(order, agent) and not agent.instance_ended
    ]
    detail = "is no agent of this fleet that a person or quarantine took out of use"
    unknown = sorted({*order.nodes} - {step.node for step in back})
    missed = [Held(pool="", reason=Reason.NOT_FOUND, detail=f"{name} {detail}") for name in unknown]
    return plan_of(situation, without_frozen(situation, [*back, *missed, *_for_holds(situation, back)]))


def close_breaker_for_a_person(snapshot: Snapshot, fleet: Fleet, order: CloseBreaker) -> Plan:
    """Forget what a pool's launches were lost by, so that the next pass launches what its queue needs."""
    situation = assess(snapshot, fleet)
    memory = close_breaker(situation, order.pool)
    if memory == situation.memory:
        return plan_of(situation, [Held(pool=order.pool, reason=Reason.NOT_FOUND, detail=f"the breaker of {order.pool} is not open")])
    return plan_of(situation, [], memory)


def purge_for_a_person(snapshot: Snapshot, fleet: Fleet, order: Purge) -> Plan:
    """Decide which queue items to cancel: those that ask for the label, never one that waits for a named node."""
    situation = assess(snapshot, fleet)
    decided: list[Step | Held] = []
    for view in snapshot.controllers.values():
        if order.controller not in {None, view.name}:
            continue
        if not view.complete or view.in_parts:  # which items wait for a named node is not known of all
            reason = Reason.QUEUE_IN_PARTS if view.complete else Reason.INCOMPLETE
            decided.append(Held(pool="", controller=view.name, reason=reason, detail=view.problem or view.in_parts))
            continue
        nodes = {node.name: node for node in view.nodes}
        for item in view.items:
            label = label_of(nodes, item)
            if label not in nodes and asks_for(label, order.label):
                decided.append(
                    CancelItem(
                        controller=view.name,
                        item=item.id,
                        job=item.job,
                        reason=Reason.MANUAL,
                        detail=f"{item.job} asks for {label}: {order.reason}",
                    )
                )
    return plan_of(situation, without_frozen(situation, decided))


def _is_meant(order: Resume, agent: Agent) -> bool:
    if order.nodes:
        return agent.record.node in order.nodes
    names = {Scope.FLEET: "", Scope.CONTROLLER: agent.record.controller, Scope.POOL: agent.pool.name}
    return names.get(order.scope) == order.name


def handle(snapshot: Snapshot, fleet: Fleet, event: InstanceEvent) -> Plan:
    """Decide what follows from an announcement of EC2 before the schedule sees it."""
    situation = assess(snapshot, fleet)
    # Its node is deleted now, and its record condemned: builds that it takes along, and who has ended it, are noted first.
    now, before = situation.memory, snapshot.memory
    memory = now if event.kind is Announced.STATE and (now.lost, now.trials) != (before.lost, before.trials) else None
    return plan_of(situation, without_frozen(situation, handle_event(situation, event)), memory)


def _to_drain(situation: Situation, order: DrainSome | DrainNodes | DrainAll) -> tuple[list[Agent], list[Held]]:
    """Choose the agents that a person's drain is about; say of which there are none."""
    match order:
        case DrainNodes():
            return _named(situation, order)
        case DrainSome():
            return _some(situation, order)
        case DrainAll():
            return _all(situation, order)


def _all(situation: Situation, order: DrainAll) -> tuple[list[Agent], list[Held]]:
    """Choose all agents that take builds, but for those that a build may be bound to: it could start nowhere else."""
    there = (agent for agent in situation.agents if agent.phase in _MAY_BE_DRAINED and agent.node)
    of_pool = (agent for agent in there if order.pool in {None, agent.pool.name})
    meant = [agent for agent in of_pool if order.controller in {None, agent.record.controller}]
    bound = [agent for agent in meant if situation.protected(agent)]
    if not meant:
        return [], [Held(pool=order.pool or "", reason=Reason.NOT_FOUND, detail="no agent takes builds there now")]
    detail = "a build may be bound to {}; to drain it all the same, name it"
    held = [hold_back(agent, Reason.PINNED, detail.format(agent.record.node)) for agent in bound]
    return [agent for agent in meant if agent not in bound], held


def _named(situation: Situation, order: DrainNodes) -> tuple[list[Agent], list[Held]]:
    agents = [agent for agent in situation.agents if agent.phase in _MAY_BE_DRAINED and agent.node]
    named = [agent for name in order.nodes for agent in agents if agent.record.node == name]  # several, where a machine serves several
    detail = "is no agent of this fleet that takes builds now, or that a monitor took offline"
    unknown = sorted({*order.nodes} - {agent.record.node for agent in named})
    details = [
        f"{name} is a pool: autoscaler drain --pool {name}" if name in situation.fleet.pools else f"{name} {detail}" for name in unknown
    ]
    return named, [Held(pool="", reason=Reason.NOT_FOUND, detail=detail) for detail in details]


def _some(situation: Situation, order: DrainSome) -> tuple[list[Agent], list[Held]]:
    pools = [pool for (controller, name), pool in situation.pools.items() if name == order.pool and order.controller in {None, controller}]
    loose = [agent for pool in pools for agent in pool.ready if not situation.protected(agent)]
    detail = f"{len(loose)} of {order.count} asked for"
    missing = [Held(pool=order.pool, reason=Reason.FEWER_THAN_ASKED, detail=detail)] if len(loose) < order.count else []
    return least_missed(situation, loose)[: order.count], missing
