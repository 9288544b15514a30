"""Controllers that left the fleet file: nobody sees their builds, so nothing of theirs is ended, and a person decides."""

from collections.abc import Iterator

from autoscaler.domain.facts.plan import Held
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.facts.snapshot import Instance
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.left_pools import is_controller_left
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.steps import Decided, hold_back


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
