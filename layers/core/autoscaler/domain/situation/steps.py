"""Helpers that write steps for an agent, and the plan that steps make together."""

from collections.abc import Iterable

from autoscaler.domain.facts.memory import Memory
from autoscaler.domain.facts.nodes import Mark, MarkClass
from autoscaler.domain.facts.orders import Hold, text_of
from autoscaler.domain.facts.plan import Adopt, BootFailure, Cordon, DeleteNode, EndReservation, Held, Plan, Step, Terminate, Uncordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import InstanceState
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.situation import Situation

Decided = Iterable[Step | Held]


def without_frozen(situation: Situation, decided: Decided) -> list[Step | Held]:
    """Drop every step where an operator froze things, except adopting: that touches nothing, and the limits need it."""
    left: list[Step | Held] = []
    frozen: dict[tuple[str, str], tuple[Hold, ...]] = {}
    for step in decided:
        pool = getattr(step, "pool", "")
        holds = () if isinstance(step, Held | Adopt) else situation.overrides.holds_on(step.controller, pool)
        freezes = tuple(hold for hold in holds if hold.freeze)
        if freezes:
            frozen[step.controller, pool] = freezes
        else:
            left.append(step)
    for (controller, pool), freezes in frozen.items():
        left.append(Held(pool=pool, controller=controller, reason=Reason.FROZEN, detail=text_of(freezes, situation.now)))
    return left


def plan_of(situation: Situation, decided: Decided, memory: Memory | None = None, failures: tuple[BootFailure, ...] = ()) -> Plan:
    """Make the plan of one pass, without steps that an operator froze."""
    decided = tuple(decided)
    return Plan(
        pass_id=situation.snapshot.pass_id,
        taken_at=situation.now,
        steps=tuple(step for step in decided if not isinstance(step, Held)),
        held=tuple(step for step in decided if isinstance(step, Held)),
        memory=situation.memory if memory is None else memory,
        boot_failures=failures,
        remember=memory is not None,
    )


def leaving(decided: Decided, controller: str) -> set[str]:
    """Name the nodes of a controller that this pass cordons already."""
    return {step.node for step in decided if isinstance(step, Cordon) and step.controller == controller}


def cordon(situation: Situation, agent: Agent, kind: MarkClass, reason: Reason, detail: str) -> Cordon:
    """Cordon an agent in the name of this pass."""
    if agent.node is None:
        raise ValueError(f"{agent.record.instance_id} has no node to cordon")
    mark = Mark(fleet=situation.fleet.name, kind=kind, pass_id=situation.snapshot.pass_id)
    return Cordon(
        controller=agent.record.controller,
        pool=agent.pool.name,
        node=agent.node.name,
        mark=mark,
        over_monitor=agent.phase is Phase.MARKED,
        reason=reason,
        detail=detail,
    )


def uncordon(agent: Agent, reason: Reason, detail: str) -> Uncordon:
    """Remove our mark from an agent's node."""
    if agent.node is None or agent.mark is None:
        raise ValueError(f"{agent.record.instance_id} carries no mark of ours")
    return Uncordon(
        controller=agent.record.controller,
        pool=agent.pool.name,
        node=agent.node.name,
        mark=agent.mark,
        reason=reason,
        detail=detail,
    )


def end_reservation(agent: Agent, until_at: float, reason: Reason, detail: str, *, person: str = "") -> EndReservation:
    """Set when the reservation of an agent ends; with ``person``: of the device of it that they have."""
    return EndReservation(
        controller=agent.record.controller,
        pool=agent.pool.name,
        node=agent.record.node,
        instance_id=agent.record.instance_id,
        until_at=until_at,
        person=person,
        reason=reason,
        detail=detail,
    )


def terminate(agent: Agent, reason: Reason, detail: str) -> Terminate:
    """Terminate an agent."""
    return Terminate(
        controller=agent.record.controller,
        pool=agent.pool.name,
        instance_id=agent.record.instance_id,
        node=agent.record.node,
        mark=agent.mark,
        reason=reason,
        detail=detail,
        ended=_shown_after_their_end(agent),
    )


def _shown_after_their_end(agent: Agent) -> tuple[str, ...]:
    """Name the builds that executors go on showing."""
    return tuple(build.key for build in agent.node.ended) if agent.node else ()


def delete_node(agent: Agent, node: str, reason: Reason) -> DeleteNode | Held:
    """Delete the node of an agent whose instance is gone: once, or what is on it would wait for ever."""
    if agent.is_node_deleted:
        jobs = ", ".join(sorted({build.job or "a build" for build in agent.node.builds})) if agent.node else ""
        detail = f"{node}: its node is deleted, and Jenkins lists it until it has ended {jobs or 'what is on it'}, which takes 5 min"
        return hold_back(agent, Reason.NODE_DELETED, detail)
    return DeleteNode(
        controller=agent.record.controller,
        pool=agent.pool.name,
        node=node,
        instance_id=agent.record.instance_id,
        fate=agent.instance or InstanceState.TERMINATED,
        though_busy=not agent.idle,
        ended=_shown_after_their_end(agent),
        reason=reason,
        detail=f"EC2 says that its instance {agent.record.instance_id} is gone",
    )


def hold_unread(agent: Agent) -> Held:
    """Say that nothing is done to an agent whose node is there and was not understood: it is neither missing nor idle."""
    return hold_back(agent, Reason.NODE_UNREAD, f"{agent.record.node} could not be read, so nobody knows whether it is idle")


def hold_back(agent: Agent, reason: Reason, detail: str) -> Held:
    """Say which step is not taken for an agent, and why."""
    return Held(pool=agent.pool.name, controller=agent.record.controller, reason=reason, detail=detail)
