"""Machines that serve several controllers at once, with a node on each: one side of the machine each.

A machine goes only when it is drained on all sides: out of use by our mark, idle in two looks, no build bound to its node. A node of its
name that no record knows counts like any other: its record was lost. So the sides that are drained wait for those that are not, whatever
was cut off in between.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace

from autoscaler.domain.facts.fleet import Share
from autoscaler.domain.facts.nodes import MarkClass, is_of_host
from autoscaler.domain.facts.plan import Cordon, Held, Step, Stop, Terminate
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import SIDE, InstanceState, Node
from autoscaler.domain.repair.instances import is_settled
from autoscaler.domain.scale_in.device_reservations import devices_reserved, told_people
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.left_sides import told_unseen, unseen_sides, why_not_wanted
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.steps import Decided, cordon, hold_back, leaving, terminate


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
    else:
        yield from _why_it_stays(situation, agent, why)


def _why_it_stays(situation: Situation, agent: Agent, why: str) -> Iterator[Held]:
    if agent.phase is Phase.SET_ASIDE and agent.node:
        detail = f"{why}; {agent.node.name} was taken offline by a person ({agent.node.reason}): bring it online, or delete it"
        yield hold_back(agent, Reason.MARKED_BY_A_PERSON, detail)
    elif agent.phase in (Phase.READY, Phase.LOST) and situation.protected(agent):
        yield hold_back(agent, Reason.PINNED, f"{why}; a build may be bound to {agent.record.node}")


def keep_for_other_sides(situation: Situation, decided: Decided) -> Iterator[Step | Held]:
    """Keep each machine that is not drained on all sides, or of which a person has a device, whatever was decided for one of them."""
    by_id = {agent.record.instance_id: agent for agent in situation.agents}
    sided = {agent.record.machine for agent in situation.agents if agent.record.is_side}
    for step in decided:
        agent = by_id.get(step.instance_id) if isinstance(step, Terminate | Stop) else None
        kept = _kept_for(situation, agent, sided) if agent is not None else None
        yield step if kept is None or agent is None else hold_back(agent, *kept)


def _kept_for(situation: Situation, agent: Agent, sided: Collection[str]) -> tuple[Reason, str] | None:
    """Say for whom a machine is kept: builds of other controllers, or people who have devices of it. ``sided``: machines with sides."""
    record = agent.record
    if record.is_instance and (unseen := next(unseen_sides(situation, record.machine), None)):
        return Reason.USED_ELSEWHERE, told_unseen(record.machine, unseen[1])
    if record.is_instance and (where := next(_in_use_where_it_was(situation, agent), None)):
        return Reason.USED_ELSEWHERE, where
    is_shared = agent.pool.share is Share.COOPERATIVE or record.machine in sided
    if record.is_instance and is_shared and (where := next(_in_use(situation, agent), None)):
        return Reason.USED_ELSEWHERE, where
    # A side may go alone, unless it is the one that says who has the devices.
    reserved = devices_reserved(situation, record.machine) if record.is_instance or record.devices_for else ()
    return (Reason.RESERVED, told_people(reserved, record.node)) if reserved else None


def _in_use_where_it_was(situation: Situation, agent: Agent) -> Iterator[str]:
    """Say on which node that it leaves for another controller a build may be: the node was brought online before it was deleted."""
    for left in agent.record.leaves:
        view = situation.snapshot.controllers.get(left.controller)
        node = next((node for node in view.nodes if node.name == left.node), None) if view else None
        is_seen = view is not None and left.node not in view.unread and not situation.no_giving_up(left.controller)
        if not is_seen or (node is not None and not _is_left(situation, left.controller, node)):
            yield f"it leaves {left.controller}, and a build may be on its node {left.node} there"


def _in_use(situation: Situation, agent: Agent) -> Iterator[str]:
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
    look = situation.memory.observations.get(agent.record.instance_id)
    if agent.phase not in {Phase.RETIRING, Phase.DRAINING, Phase.CONDEMNED} or agent.by_labels or not agent.idle:
        return False
    if situation.protected(agent) or look is None:
        return False
    return is_settled(look, agent.pool.drain_settle_seconds, situation.now, situation.snapshot.request_id)


def _beside(situation: Situation, agent: Agent) -> list[Agent]:
    """Find the other sides of a machine."""
    return [one for one in situation.sides.get(agent.record.machine, ()) if one.record.instance_id != agent.record.instance_id]
