"""Rotation: which idle agents of a shared pool go from one controller to another, and to which."""

from collections.abc import Iterator, Mapping

from autoscaler.domain.facts.fleet import Share
from autoscaler.domain.facts.nodes import MarkClass, has_static_node
from autoscaler.domain.facts.snapshot import RecordState
from autoscaler.domain.forecast.forecast import NOTHING
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.situation import Situation

# From the look that decides it until builds begin elsewhere: two looks, one node deleted, one made, and the agent's next question.
ROTATION_SECONDS = 90.0
# An agent that has just come is not sent on: controllers that both have short jobs would toss it to and fro.
_STAYS_SECONDS = 300.0
_COMES = (RecordState.REQUESTED, RecordState.STARTING)


def destinations(situation: Situation, pool: str) -> dict[str, str]:
    """Say to which controller each agent of a pool goes that was taken out of use for that, by instance id.

    Those that nobody waits for any more are left out: they stay where they are.
    """
    if not _rotates(situation, pool):
        return {}
    taken = sorted((agent for agent in situation.agents if is_leaving(agent, pool)), key=lambda agent: agent.record.instance_id)
    short = {view.controller: _short(situation, view) for view in _views(situation, pool)} if taken else {}
    found: dict[str, str] = {}
    for agent in taken:
        wanting = {name: count for name, count in short.items() if count > 0 and name != agent.record.controller}
        if wanting:
            neediest = max(wanting, key=lambda name: (_longest_wait(situation, name, pool), name))
            short[neediest] -= agent.pool.executors
            found[agent.record.instance_id] = neediest
    return found


def _rotates(situation: Situation, pool: str) -> bool:
    spec = situation.fleet.pools.get(pool)
    return spec is not None and spec.share is Share.ROTATE and not situation.stopped_by(pool)


def is_leaving(agent: Agent, pool: str) -> bool:
    """Tell whether an agent of a pool was taken out of use to serve another controller, and is still there."""
    is_marked = agent.mark is not None and agent.mark.kind is MarkClass.ROTATE
    return agent.pool.name == pool and is_marked and not agent.instance_ended and not agent.pool.has_left


def spare_elsewhere(situation: Situation, pool: PoolView) -> Iterator[Agent]:
    """Find the idle agents that other controllers have of a shared pool and do not need, those idle longest first."""
    if pool.spec.share is not Share.ROTATE:
        return
    for view in _views(situation, pool.name):
        if view.controller == pool.controller or view.on_hold or situation.no_giving_up(view.controller):
            continue
        idle = [agent for agent in view.ready if agent.idle and _may_leave(situation, agent)]
        spare = max(0, len(idle) - _own_need(situation, view))
        yield from sorted(idle, key=lambda agent: situation.memory.idle_since.get(agent.record.instance_id, situation.now))[:spare]


def _may_leave(situation: Situation, agent: Agent) -> bool:
    kept = situation.now < agent.record.keep_until or situation.now - agent.record.rotated_at < _STAYS_SECONDS
    kept = kept or has_static_node(agent.record)
    return not kept and not situation.protected(agent) and not agent.record.is_lent(situation.now)


def _own_need(situation: Situation, pool: PoolView) -> int:
    """Count the agents that a controller's own jobs wait for, or are foreseen to."""
    executors = len(situation.demands[pool.controller].waits_for(pool.name)) + pool.spec.warm_executors * pool.has_floor
    executors += situation.forecasts(pool.controller).get(pool.name, NOTHING).executors
    return -(-executors // pool.executors)


def _short(situation: Situation, pool: PoolView) -> int:
    """Count the executors that a controller lacks for the jobs that wait there, those on their way counted as there."""
    view = situation.snapshot.controllers[pool.controller]
    if not view.complete or view.quieting_down or pool.on_hold:
        return 0
    coming = sum(agent.record.state in _COMES and not agent.record.reservation for agent in pool.agents) * pool.executors
    free = sum(pool.executors - agent.taken_executors for agent in pool.ready)
    return len(situation.demands[pool.controller].waits_for(pool.name)) - coming - free


def _longest_wait(situation: Situation, controller: str, pool: str) -> float:
    return max(situation.demands[controller].waits_for(pool), default=0.0)


def _views(situation: Situation, pool: str) -> list[PoolView]:
    views: Mapping[tuple[str, str], PoolView] = situation.pools
    return [view for (controller, name), view in views.items() if name == pool and controller in situation.demands]
