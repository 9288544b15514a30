"""Uncordon at once agents that a build may be bound to: a build that waits for a cordoned agent waits forever.

A mark that is only for now (retire) is undone for good. What was drained for good comes back only after a restart of its
controller, while the pipeline that it held waits there by name: once that one has resumed, it is drained again. So does an agent that
is only outdated, for any item that asks for it by name.
"""

from collections.abc import Iterator

from autoscaler.domain.facts.nodes import MarkClass, class_of
from autoscaler.domain.facts.plan import Cordon, Uncordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.situation.agents import Agent, Phase
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.steps import Decided, cordon, leaving, uncordon

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
