"""The walk over one controller's queue, put together from what the pass has seen."""

from autoscaler.domain.agents import Phase
from autoscaler.domain.bound import bound
from autoscaler.domain.launch import LaunchWalk
from autoscaler.domain.room import Room
from autoscaler.domain.situation import Situation
from autoscaler.domain.slots import slots_left
from autoscaler.domain.supply import Slot, build_supply, ready_slots


def in_turn(situation: Situation) -> list[str]:
    """The controllers, first the one where a job has waited longest: limits may leave room for one of them only."""
    demands = situation.demands
    return sorted(demands, key=lambda name: max((want.item.waiting_seconds for want in demands[name].wants), default=0.0), reverse=True)


def walk_the_queue(situation: Situation, controller: str, room: Room) -> LaunchWalk:
    """Give each job that waits the executor it would get, and plan the agents that this takes; what is planned is taken from ``room``."""
    walk = begin(situation, controller, room)
    kept = {agent.record.instance_id for agent in bound(situation, controller)}
    retiring = [
        agent
        for pool in situation.pools_of(controller).values()
        for agent in pool.agents
        if agent.phase is Phase.RETIRING
        and not pool.on_hold
        and not situation.stopped
        and agent.record.instance_id not in kept
        and not agent.instance_ended
    ]
    walk.run(situation.demands[controller].wants, retiring)
    return walk


def begin(situation: Situation, controller: str, room: Room) -> LaunchWalk:
    """Set out with all executors that are there or on their way."""
    snapshot = situation.snapshot
    learned = snapshot.learned[controller]
    pools = situation.pools_of(controller)
    runs = situation.queued_runs(controller)
    supply = build_supply(
        snapshot.controllers[controller],
        situation.fleet,
        pools,
        situation.expected(controller),
        learned,
        situation.now,
        recovering=situation.recovering(controller),
    )
    for agent in bound(situation, controller):
        for seconds in ready_slots(agent, learned, situation.now, runs):
            supply.add(Slot(agent.pool.name, seconds))
    return LaunchWalk(controller, pools, supply, room, learned, situation.now, runs, slots=slots_left(situation, controller))
