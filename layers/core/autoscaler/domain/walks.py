"""The walk over one controller's queue, put together from what the pass has seen."""

from collections.abc import Iterator

from autoscaler.domain.agents import Phase
from autoscaler.domain.bound import bound, uncordon
from autoscaler.domain.failing import cannot_come_back
from autoscaler.domain.launch import LaunchWalk
from autoscaler.domain.plan import Uncordon
from autoscaler.domain.reasons import Reason
from autoscaler.domain.room import Room
from autoscaler.domain.situation import Situation
from autoscaler.domain.slots import slots_left
from autoscaler.domain.supply import Slot, build_supply, ready_slots


def controllers_in_turn(situation: Situation) -> list[str]:
    """The controllers, first the one where a job has waited longest: limits may leave room for one of them only."""
    demands = situation.demands
    return sorted(demands, key=lambda name: max((want.item.waiting_seconds for want in demands[name].wants), default=0.0), reverse=True)


def walk_the_queue(situation: Situation, controller: str, room: Room) -> LaunchWalk:
    """Give each job that waits the executor it would get, and plan the agents that this takes; what is planned is taken from ``room``."""
    walk = begin_walk(situation, controller, room)
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
        and not cannot_come_back(situation.memory, agent)
    ]
    walk.run(situation.demands[controller].wants, retiring)
    return walk


def bring_back_again(situation: Situation, controller: str) -> Iterator[Uncordon]:
    """Try again to bring back what could not be brought back, while jobs wait for its pool; nobody counts on it meanwhile."""
    wanted = {pool.name for want in situation.demands[controller].wants if want.mature for pool in want.pools}
    kept = {agent.record.instance_id for agent in bound(situation, controller)}
    for name in sorted(wanted & situation.pools_of(controller).keys()):
        pool = situation.pools[controller, name]
        for agent in pool.agents:
            comes_back = agent.phase is Phase.RETIRING and agent.record.instance_id not in kept and not agent.instance_ended
            if comes_back and not pool.on_hold and cannot_come_back(situation.memory, agent):
                yield uncordon(agent, Reason.DEMAND_IS_BACK, f"jobs wait for {name}, and it could not be brought back before")


def begin_walk(situation: Situation, controller: str, room: Room) -> LaunchWalk:
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
        if cannot_come_back(situation.memory, agent):
            continue
        for seconds in ready_slots(agent, learned, situation.now, runs):
            supply.add(Slot(agent.pool.name, seconds))
    return LaunchWalk(controller, pools, supply, room, learned, situation.now, runs, slots=slots_left(situation, controller))
