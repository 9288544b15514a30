"""Machines that serve several controllers, at once or one after another, and the devices on them that people have."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain

from autoscaler.domain.facts.fleet import Share
from autoscaler.domain.facts.nodes import MarkClass, described_instance, is_of_host
from autoscaler.domain.facts.orders import Release, Reserve
from autoscaler.domain.facts.plan import (
    Cordon,
    EndReservation,
    FinishRotation,
    Held,
    ReserveDevice,
    Rotate,
    Terminate,
    Uncordon,
)
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import SIDE, InstanceState, Node, Record, RecordState, Reservation
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.left import told_unseen, unseen_sides, why_not_wanted
from autoscaler.domain.situation.situation import Decided, Situation, cordon, end_reservation, hold_back, leaving, terminate, uncordon
from autoscaler.domain.situation.states import DISCONNECT_GRACE_SECONDS, is_settled
from autoscaler.domain.situation.supply import destinations
from autoscaler.domain.wording import listed

# Agents that were taken out of use to serve another controller: sent there once they are drained, or left where they are.


def unwanted_elsewhere(situation: Situation, agent: Agent) -> Uncordon | None:
    """Give an agent back to its controller if no other one waits for it any more, or a build is bound to it; None if it may go.

    A job that asks for the node by name would keep it where it is, and never begin.
    """
    if situation.protected(agent):
        return uncordon(agent, Reason.PINNED, f"a build of {agent.record.controller} waits for {agent.record.node} by name")
    if agent.record.instance_id in destinations(situation, agent.pool.name):
        return None
    return uncordon(agent, Reason.NOT_WANTED_ELSEWHERE, "no other controller waits for it any more")


def rotate(situation: Situation, agent: Agent, seen: str) -> Rotate | Held:
    """Send a drained agent to the controller that waits for it."""
    to = destinations(situation, agent.pool.name).get(agent.record.instance_id)
    if to is None or agent.mark is None or agent.record.node is None:
        return hold_back(agent, Reason.SECOND_LOOK, f"{agent.record.node} is drained, and nobody waits for it")
    return Rotate(
        controller=agent.record.controller,
        pool=agent.pool.name,
        node=agent.record.node,
        instance_id=agent.record.instance_id,
        mark=agent.mark,
        to=to,
        reason=Reason.ROTATES,
        detail=f"{seen}, and jobs wait on {to}",
    )


def confirmed_unseen(situation: Situation, target: str, why: str) -> Iterator[FinishRotation]:
    """Let go of what a machine left, or a host was, on a controller that is not in the fleet file any more: a person says that it is idle.

    The sides of an instance end with the instance. ``target``: its node or its id.
    """
    machines = {record.machine for record in situation.snapshot.records if target in {record.node, record.instance_id, record.machine}}
    for machine in machines:
        for record, side in unseen_sides(situation, machine):
            if side in record.leaves or record.is_host:
                detail = f"{side.controller} left the fleet file; {why}"
                yield _finish(record, side.controller, side.node or "", detail, Reason.MANUAL)


def finish_rotations(situation: Situation, _decided: Decided) -> Iterator[FinishRotation | Held]:
    """Delete the node that an agent had on the controller that it left, after a pass that was cut off in between.

    If a build is bound to that node, the agent goes back to it: until then nobody would connect it there again.
    """
    for record in situation.snapshot.records:
        for left in record.leaves:
            if left.node is not None and left.controller in situation.left_controllers:
                detail = f"{record.instance_id} serves {record.controller} once it has left: {told_unseen(record.machine, left)}"
                yield Held(pool=record.pool, controller=record.controller, reason=Reason.USED_ELSEWHERE, detail=detail)
            elif left.node is not None and not situation.no_giving_up(left.controller):
                step = _finish(record, left.controller, left.node, f"{record.instance_id} serves {record.controller} now")
                yield replace(step, is_bound=situation.is_bound(left.controller, left.node))
    if any(record.is_host for record in situation.snapshot.records):
        yield from _forgotten_nodes_of_hosts(situation)


def _forgotten_nodes_of_hosts(situation: Situation) -> Iterator[FinishRotation]:
    """Delete the node of a host on a controller that its record does not know: the record was lost while the host changed controllers.

    The nodes of instances end with the instances; a host stays for ever.
    """
    hosts = {
        record.instance_id: record
        for record in situation.snapshot.records
        if record.is_host and record.state is RecordState.REGISTERED and situation.now - record.changed_at >= DISCONNECT_GRACE_SECONDS
    }
    for controller, node in situation.believed_nodes() if hosts else ():
        record = hosts.get(described_instance(situation.fleet, node.name, node.description) or "")
        served = {binding.controller for binding in (*record.bindings, *record.leaves)} if record else set[str]()
        if record and controller not in served and not node.temporarily_offline and _is_left(situation, controller, node):
            detail = f"{record.instance_id} serves {record.controller} now, and not {controller}"
            yield _finish(record, controller, node.name, detail)


def _finish(record: Record, controller: str, node: str, detail: str, reason: Reason = Reason.ROTATES) -> FinishRotation:
    return FinishRotation(controller=controller, pool=record.pool, node=node, instance_id=record.instance_id, reason=reason, detail=detail)


# Devices that people have: of a machine that serves several controllers at once a person gets one device, and builds go on beside them.
#
# It is kept in the record of the machine's first side. The agent hears of it when it asks, and holds a lease for the person until it is
# over.


def holders(situation: Situation) -> Iterator[Agent]:
    """The first side of each machine of which people may have devices, or have some, though its pool does not share it any more.

    What people have of the machine stands there.
    """
    found: dict[str, Agent] = {}
    taken = {agent.record.machine for agent in situation.agents if _reserved(situation, agent)}
    for agent in situation.agents:
        if agent.pool.share is Share.COOPERATIVE or agent.record.machine in taken:
            before = found.setdefault(agent.record.machine, agent)
            found[agent.record.machine] = min(before, agent, key=_place)
    yield from found.values()


def _place(agent: Agent) -> tuple[bool, int]:
    order = agent.pool.controllers
    name = agent.record.controller
    return not agent.record.is_instance, order.index(name) if name in order else len(order)


def devices_reserved(situation: Situation, machine: str) -> list[Reservation]:
    """What people have of a machine now."""
    sides = (agent for agent in situation.agents if agent.record.machine == machine)
    return [one for side in sides for one in _reserved(situation, side)]


def told_people(reserved: Iterable[Reservation], node: str | None) -> str:
    """Say who has devices of a machine."""
    people = sorted({one.person for one in reserved})
    return f"{listed(people)} {'have devices' if len(people) > 1 else 'has a device'} of {node}"


def _reserved(situation: Situation, side: Agent) -> list[Reservation]:
    return [one for one in side.record.devices_for if not one.is_over(situation.now)]


def has_device(situation: Situation, person: str, target: str) -> bool:
    """Tell whether a person has a device of the machine that they name."""
    machines = {agent.record.machine for agent in situation.agents if target in {agent.record.node, agent.record.machine}}
    return any(one.person == person for machine in machines for one in devices_reserved(situation, machine))


def free_devices(situation: Situation, machine: str) -> int | None:
    """Count the devices that are free, and not to be held for a person by now; None where the machine does not say."""
    told = situation.snapshot.devices.get(machine)
    if told is None or not told.is_fresh(situation.now):
        return None
    since = sum(one.since_at >= told.told_at for one in devices_reserved(situation, machine))
    return told.free - since


def reserve_device(situation: Situation, order: Reserve, reservation: Reservation) -> list[ReserveDevice | EndReservation | Held]:
    """Choose the machine of which a person gets a device: the one with most that are free. Jobs that wait come first."""
    mine = [one for one in holders(situation) if order.target in {one.pool.name, one.record.node, one.record.machine}]
    if known := _people(situation, mine).get(order.person):
        told = f"a device for {order.person}, as {order.by} asked"
        return [end_reservation(known, reservation.until_at, Reason.RESERVED, told, person=order.person)]
    for pool in dict.fromkeys(one.pool.name for one in mine):
        if waits := sum(situation.starved[name].get(pool, 0) for name in situation.demands):
            return [Held(pool=pool, reason=Reason.CI_FIRST, detail=f"{waits} jobs wait for {pool}: its devices are for them first")]
    best = max(mine, key=partial(_free_for_people, situation), default=None)
    if best is None or not _free_for_people(situation, best):
        return [Held(pool=best.pool.name if best else "", reason=Reason.NO_FREE_DEVICE, detail=_why_none(situation, mine, order.target))]
    return [_step(best, reservation)]


def _free_for_people(situation: Situation, agent: Agent) -> int:
    """Count the devices of a machine that a person may have; none of one that is about to go."""
    is_usable = agent.phase in {Phase.READY, Phase.RETIRING} and not agent.instance_ended
    return (free_devices(situation, agent.record.machine) or 0) if is_usable else 0


def _why_none(situation: Situation, mine: list[Agent], target: str) -> str:
    silent = sorted(one.record.machine for one in mine if free_devices(situation, one.record.machine) is None)
    if silent:
        return f"{', '.join(silent)} of {target}: no recent report of devices; the agent reports those that gpu-lease hands out"
    return f"no device of {target} is free"


def _people(situation: Situation, mine: Iterable[Agent]) -> dict[str, Agent]:
    """Find who has a device of these machines now, and the side in whose record that stands."""
    machines = {agent.record.machine for agent in mine}
    sides = (agent for agent in situation.agents if agent.record.machine in machines)
    return {one.person: side for side in sides for one in _reserved(situation, side)}


def _step(agent: Agent, reservation: Reservation) -> ReserveDevice:
    return ReserveDevice(
        controller=agent.record.controller,
        pool=agent.pool.name,
        node=agent.record.node or "",
        instance_id=agent.record.instance_id,
        reservation=reservation,
        reason=Reason.RESERVED,
        detail=f"a device for {reservation.person}: {reservation.reason}",
    )


def release_device(situation: Situation, order: Release) -> list[EndReservation | Held] | None:
    """End what a person has of a machine; None where nobody has anything of what is named."""
    mine = [one for one in holders(situation) if order.target in {one.record.node, one.record.machine, one.record.instance_id}]
    people = _people(situation, mine)
    if not people:
        return None
    wanted = [order.person] if order.person else sorted(people)
    if not set(wanted) <= people.keys():
        detail = f"{order.person} has no device of {order.target}; {', '.join(sorted(people))} {'have' if len(people) > 1 else 'has'}"
        return [Held(pool=mine[0].pool.name, reason=Reason.RESERVED, detail=detail)]
    if len(wanted) > 1:
        detail = f"{', '.join(wanted)} have devices of {order.target}: say whose is to end (person)"
        return [Held(pool=mine[0].pool.name, reason=Reason.NOT_FOUND, detail=detail)]
    told = f"a device was reserved for {wanted[0]}; {order.reason}"
    return [end_reservation(people[wanted[0]], situation.now, Reason.MANUAL, told, person=wanted[0])]


# Machines that serve several controllers at once, with a node on each: one side of the machine each.
#
# A machine goes only when it is drained on all sides: out of use by our mark, idle in two looks, no build bound to its node. A node of its
# name that no record knows counts like any other: its record was lost. So the sides that are drained wait for those that are not, whatever
# was cut off in between.


def drain_together(situation: Situation, controller: str, decided: Decided) -> Iterator[Cordon]:
    """Take a machine out of use on this controller too, once it is drained for good on another one, or its reservation there is over.

    A side that is only retired comes back when it is needed, whatever the others do.
    """
    taken = leaving(decided, controller)
    for agent in situation.agents:
        if agent.record.controller != controller or agent.phase is not Phase.READY or agent.record.is_host or agent.record.node in taken:
            continue
        for other in _beside(situation, agent):
            if other.phase is Phase.DRAINING and other.mark and not situation.protected(agent):
                detail = f"it is drained on {other.record.controller} ({other.mark.kind})"
                yield cordon(situation, agent, other.mark.kind, Reason.DRAINS_ELSEWHERE, detail)
                break


def left_the_file(situation: Situation, controller: str, decided: Decided) -> Iterator[Cordon | Terminate | Held]:
    """Take hosts out of use that left the fleet file, and sides on controllers that their pool does not serve at once any more."""
    taken = leaving(decided, controller)
    for agent in situation.agents:
        if agent.record.controller != controller or agent.record.node in taken or agent.instance_ended:
            continue
        if why := why_not_wanted(situation, agent) or _why_beside_unseen(situation, agent):
            yield from _take_out(situation, agent, why)


def _why_beside_unseen(situation: Situation, agent: Agent) -> str | None:
    """Say which side of an instance nobody sees any more: what it is on other controllers is drained, and the instance stays."""
    if agent.record.is_host:
        return None  # nobody ends it
    return next((told_unseen(record.machine, side) for record, side in unseen_sides(situation, agent.record.machine)), None)


def _take_out(situation: Situation, agent: Agent, why: str) -> Iterator[Cordon | Terminate | Held]:
    """Drain what is not wanted any more, and a host though it is off, or a monitor marked it. Say what keeps it."""
    if agent.record.is_host and agent.node and not is_of_host(situation.fleet, agent.record, agent.node):
        yield replace(terminate(agent, Reason.LEFT_THE_FILE, f"{why}; the node of its name is somebody else's"), node=None, mark=None)
        return
    is_ready = agent.phase is Phase.READY or (agent.record.is_host and agent.phase is Phase.MARKED)
    if agent.phase is Phase.STOPPED and agent.instance is InstanceState.STOPPED:
        yield terminate(agent, Reason.LEFT_THE_FILE, why)
    elif is_ready and not situation.protected(agent):
        yield cordon(situation, agent, MarkClass.OUTDATED, Reason.LEFT_THE_FILE, why)
    elif agent.phase is Phase.SET_ASIDE and agent.node:
        detail = f"{why}; {agent.node.name} was taken offline by a person ({agent.node.reason}): bring it online, or delete it"
        yield hold_back(agent, Reason.MARKED_BY_A_PERSON, detail)
    elif agent.phase in (Phase.READY, Phase.LOST) and situation.protected(agent):
        yield hold_back(agent, Reason.PINNED, f"{why}; a build may be bound to {agent.record.node}")


def why_used_elsewhere(situation: Situation, agent: Agent) -> tuple[Reason, str] | None:
    """Say for whom a machine is kept: builds of other controllers, or people who have devices of it."""
    record = agent.record
    is_shared = agent.pool.share is Share.COOPERATIVE or any(side.record.is_side for side in situation.sides.get(record.machine, ()))
    if record.is_instance:
        if situation.left_controllers and (unseen := next(unseen_sides(situation, record.machine), None)):
            return Reason.USED_ELSEWHERE, told_unseen(record.machine, unseen[1])
        was = _in_use_where_it_was(situation, agent) if record.leaves or agent.node is None else ()
        if where := next(chain(was, in_use_beside(situation, agent) if is_shared else ()), None):
            return Reason.USED_ELSEWHERE, where
    # A side may go alone, unless it is the one that says who has the devices.
    reserved = devices_reserved(situation, record.machine) if (record.is_instance and is_shared) or record.devices_for else ()
    return (Reason.RESERVED, told_people(reserved, record.node)) if reserved else None


def _in_use_where_it_was(situation: Situation, agent: Agent) -> Iterator[str]:
    """Say on which node a build may be that an instance leaves, or that EC2 shows as its node and its record does not.

    What it leaves may have been brought online before it was deleted. A record that is back as it was before does not know its node.
    """
    record, places = agent.record, (*agent.record.leaves, situation.instances.get(agent.record.machine))
    named = {(place.controller, place.node) for place in places if place and place.node}
    for controller, name in sorted(named - {(record.controller, record.node)}):
        view = situation.snapshot.controllers.get(controller)
        node = next((node for node in view.nodes if node.name == name), None) if view else None
        is_seen = view is not None and name not in view.unread and not situation.no_giving_up(controller)
        if not is_seen or (node is not None and not _is_left(situation, controller, node)):
            yield f"a build may be on its node {name} on {controller}"


def in_use_beside(situation: Situation, agent: Agent) -> Iterator[str]:
    """Say on which other controllers a machine may still be used. One that never had a node has none there either."""
    if agent.record.node is None:
        return
    sides = {side.record.controller: side for side in _beside(situation, agent)}
    for controller in dict.fromkeys((*agent.pool.controllers, *sides)):
        if controller != agent.record.controller and (why := _why_used(situation, controller, sides.get(controller), agent)):
            yield f"{agent.record.node}: {why}"


def _why_used(situation: Situation, controller: str, side: Agent | None, agent: Agent) -> str | None:
    name = agent.record.node
    if f"{agent.record.machine}{SIDE}{controller}" in situation.snapshot.unread_records:
        return f"its record on {controller} cannot be read by this version"
    if (reason := situation.no_giving_up(controller)) is not None:
        return f"what runs on {controller} cannot be believed now ({reason})"
    view = situation.snapshot.controllers[controller]
    node = next((node for node in view.nodes if node.name == name), None)
    if name in view.unread:
        return f"its node on {controller} could not be read"
    if node is None:
        return None
    if side is None and agent.instance is InstanceState.STOPPED and _is_left(situation, controller, node):
        return None  # it never asks again, and so never gets a record there
    if side is None:
        return f"its node on {controller} has no record"
    return None if is_drained(situation, side) else f"it is {side.phase} on {controller}, and not drained"


def _is_left(situation: Situation, controller: str, node: Node) -> bool:
    """Tell whether nothing runs on a node, or waits for it, and nobody is connected."""
    return node.offline and node.idle and not node.builds and not situation.is_bound(controller, node.name)


def is_drained(situation: Situation, agent: Agent) -> bool:
    """Tell whether an agent carries our mark, is idle and was idle in an earlier look, and no build is bound to its node."""
    if agent.phase not in {Phase.RETIRING, Phase.DRAINING, Phase.CONDEMNED} or agent.by_labels or not agent.idle:
        return False
    return not situation.protected(agent) and is_settled(situation, agent)


def _beside(situation: Situation, agent: Agent) -> list[Agent]:
    """Find the other sides of a machine."""
    return [one for one in situation.sides.get(agent.record.machine, ()) if one.record.instance_id != agent.record.instance_id]
