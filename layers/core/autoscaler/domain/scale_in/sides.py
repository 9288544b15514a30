"""Machines that serve several controllers at once, with a node on each: one side of the machine each.

A machine goes only when it is drained on all sides: out of use by our mark, idle in two looks, no build bound to its node. A node of its
name that no record knows counts like any other: its record was lost. So the sides that are drained wait for those that are not, whatever
was cut off in between.
"""

from collections.abc import Iterator

from autoscaler.domain.facts.fleet import Share
from autoscaler.domain.facts.marks import MarkClass
from autoscaler.domain.facts.plan import Cordon, Held, Step, Stop, Terminate
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import SIDE, InstanceState, Node
from autoscaler.domain.repair.two_looks import is_settled
from autoscaler.domain.scale_in.device_reservations import devices_reserved
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.canary import why_relabelled
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.steps import Decided, cordon, hold_back, leaving

# A side that is retired comes back when it is needed, whatever the others do.
_COMES_BACK = (MarkClass.RETIRE, MarkClass.RESERVED)


def drain_together(situation: Situation, controller: str, decided: Decided) -> Iterator[Cordon]:
    """Take a machine out of use on this controller too, once it is drained for good on another one."""
    taken = leaving(decided, controller)
    for agent in situation.agents:
        if agent.record.controller != controller or agent.phase is not Phase.READY or agent.record.is_host or agent.record.node in taken:
            continue
        for other in _beside(situation, agent):
            if other.phase is Phase.DRAINING and other.mark and other.mark.kind not in _COMES_BACK and not situation.protected(agent):
                detail = f"it is drained on {other.record.controller} ({other.mark.kind})"
                yield cordon(situation, agent, other.mark.kind, Reason.DRAINS_ELSEWHERE, detail)
                break


def left_the_file(situation: Situation, controller: str, decided: Decided) -> Iterator[Cordon]:
    """Take hosts out of use that left the fleet file, and sides on controllers that their pool does not serve at once any more."""
    taken = leaving(decided, controller)
    for agent in situation.agents:
        ready = agent.record.controller == controller and agent.phase is Phase.READY and agent.record.node not in taken
        if ready and not situation.protected(agent) and (why := why_not_wanted(situation, agent)):
            yield cordon(situation, agent, MarkClass.OUTDATED, Reason.LEFT_THE_FILE, why)


def why_not_wanted(situation: Situation, agent: Agent) -> str | None:
    """Say why a host or a side of a machine is not to serve its controller any more; None where it is, and for any other agent."""
    record, pool = agent.record, agent.pool
    if record.is_instance:
        return None
    if record.is_host and not any(host.id == record.machine and host.pool == pool.name for host in situation.fleet.hosts.values()):
        return f"{record.machine} is no host of pool {record.pool} in the fleet file"
    if (record.instance_id == record.machine) is (pool.share is Share.COOPERATIVE):
        return f"pool {pool.name} has another share by now ({pool.share})"
    if record.controller not in pool.controllers:
        return f"pool {pool.name} does not serve {record.controller} any more (controllers)"
    return why_relabelled(agent, situation.fleet) if record.is_host else None


def keep_for_other_sides(situation: Situation, decided: Decided) -> Iterator[Step | Held]:
    """Keep each machine that is not drained on all sides, whatever was decided for one of them."""
    by_id = {agent.record.instance_id: agent for agent in situation.agents if agent.pool.share is Share.COOPERATIVE}
    by_id |= {side.record.machine: agent for side in situation.agents if side.record.is_side and (agent := _whole(situation, side))}
    for step in decided:
        agent = by_id.get(step.instance_id) if isinstance(step, Terminate | Stop) else None
        kept = _kept_for(situation, agent) if agent is not None and agent.record.is_instance else None
        yield step if kept is None or agent is None else hold_back(agent, *kept)


def _kept_for(situation: Situation, agent: Agent) -> tuple[Reason, str] | None:
    """Say for whom a machine is kept: builds of other controllers, or people who have devices of it."""
    if where := next(_in_use(situation, agent), None):
        return Reason.USED_ELSEWHERE, where
    people = sorted(one.person for one in devices_reserved(situation, agent.record.machine))
    return (Reason.RESERVED, f"{', '.join(people)} have devices of {agent.record.node}") if people else None


def _whole(situation: Situation, side: Agent) -> Agent | None:
    return next((agent for agent in situation.agents if agent.record.instance_id == side.record.machine), None)


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
