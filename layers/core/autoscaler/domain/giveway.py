"""Give way: where a limit keeps jobs waiting, agents leave that count against it, stand idle, and are kept for what may come back.

Demand that is there comes before demand that was. What a walk over the queues would launch without those agents, and does not with
them, is what they stand in the way of; as few of them leave as that takes.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterator

from autoscaler.domain import walks
from autoscaler.domain.agents import Agent
from autoscaler.domain.marks import MarkClass
from autoscaler.domain.plan import Cordon, Held
from autoscaler.domain.reasons import Reason
from autoscaler.domain.retire import cordon
from autoscaler.domain.room import Room
from autoscaler.domain.situation import Situation

_SHARED_BY_POOLS = {Reason.FLEET_MAX_AGENTS, Reason.USD_PER_HOUR, Reason.USD_PER_MONTH}


def give_way(situation: Situation, idle: list[Agent], cordoned: Collection[Cordon]) -> Iterator[Cordon]:
    """Cordon those of these agents that jobs need the room of, idle longest first. ``cordoned``: what this pass takes already."""
    if not idle or not any(want.mature for demand in situation.demands.values() for want in demand.wants):
        return
    leaving = _leaving(situation, cordoned)
    with_them, refused = _launches(situation, leaving)
    in_the_way = [agent for agent in idle if _counts_against(agent, refused) and agent.record.instance_id not in leaving]
    if not in_the_way:
        return
    in_the_way.sort(key=lambda agent: situation.memory.idle_since.get(agent.record.instance_id, situation.now))

    def launches_without(first: int) -> int:
        return _launches(situation, leaving | {agent.record.instance_id for agent in in_the_way[:first]})[0]

    most = launches_without(len(in_the_way))
    fewest = most - with_them  # where dollars are short, a dear agent takes the room of several
    if fewest and launches_without(fewest) < most:
        fewest = bisect_left(range(len(in_the_way)), most, lo=fewest, key=launches_without)
    for agent in in_the_way[:fewest]:
        detail = f"it is idle, and takes the room of an agent that jobs wait for: {refused[0].detail}"
        yield cordon(situation, agent, MarkClass.RETIRE, Reason.GIVES_WAY, detail)


def _launches(situation: Situation, leaving: frozenset[str]) -> tuple[int, list[Held]]:
    """Count the agents that the queues would have launched now, had these left; and what was refused them for want of room."""
    room, count, refused = Room(situation, leaving), 0, list[Held]()
    for controller in walks.in_turn(situation):
        view = situation.snapshot.controllers[controller]
        if not view.complete or view.quieting_down:
            continue
        walk = walks.walk_the_queue(situation, controller, room)
        count += sum(step.count for step in walk.steps())
        refused += [held for held in walk.held.values() if held.reason in {*_SHARED_BY_POOLS, Reason.MAX_AGENTS}]
    return count, refused


def _counts_against(agent: Agent, refused: list[Held]) -> bool:
    return any(held.reason in _SHARED_BY_POOLS or held.pool == agent.pool.name for held in refused)


def _leaving(situation: Situation, cordoned: Collection[Cordon]) -> frozenset[str]:
    """Agents that take no builds any more and have none: their room is as good as free."""
    nodes = {(step.controller, step.node) for step in cordoned}
    return frozenset(a.record.instance_id for a in situation.agents if a.idle and (a.mark or (a.record.controller, a.record.node) in nodes))
