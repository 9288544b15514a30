"""Make room: where a limit keeps jobs waiting, idle agents leave that count against it.

Demand that is there comes before demand that was. What a walk over the queues would launch without those agents, and does not with
them, is what they stand in the way of; as few of them leave as that takes.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterator

from autoscaler.domain.facts.marks import MarkClass
from autoscaler.domain.facts.plan import Cordon, Held
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.launch.budget import Budget
from autoscaler.domain.launch.queue import controllers_in_turn, place_queue
from autoscaler.domain.scale_in.surplus import idle_beyond_need
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.steps import Decided, cordon

_SHARED_BY_POOLS = {Reason.FLEET_MAX_AGENTS, Reason.USD_PER_HOUR, Reason.USD_PER_MONTH}


def make_room(situation: Situation, decided: Decided) -> Iterator[Cordon]:
    """Cordon idle agents that nothing needs, idle longest first, where jobs need their room."""
    if not _may_be_refused(situation) or not (idle := idle_beyond_need(situation)):
        return
    leaving = _leaving(situation, decided)
    with_them, refused = _launches(situation, leaving)
    in_the_way = _in_the_way(situation, idle, leaving, refused)

    def launches_without(first: int) -> int:
        return _launches(situation, leaving | {agent.record.instance_id for agent in in_the_way[:first]})[0]

    most = launches_without(len(in_the_way)) if in_the_way else with_them
    if most <= with_them:
        return
    fewest = bisect_left(range(len(in_the_way)), most, key=launches_without)
    for agent in in_the_way[:fewest]:
        detail = f"it is idle, and takes the room of an agent that jobs wait for: {refused[0].detail}"
        yield cordon(situation, agent, MarkClass.RETIRE, Reason.GIVES_WAY, detail)


def _may_be_refused(situation: Situation) -> bool:
    """Tell whether the limits might refuse an agent for each waiting job: else nothing needs to be placed."""
    wants = [want for demand in situation.demands.values() for want in demand.wants if want.mature]
    if not wants:
        return False
    budget, pools = Budget(situation), {pool.name: pool for want in wants for pool in want.pools}
    return not all(budget.has_room_for(len(wants), pool) for pool in pools.values())


def _launches(situation: Situation, leaving: frozenset[str]) -> tuple[int, list[Held]]:
    """Count the launches for the queues if these agents had left, and those that a limit refused."""
    budget, count, refused = Budget(situation, leaving), 0, list[Held]()
    for controller in controllers_in_turn(situation):
        view = situation.snapshot.controllers[controller]
        if not view.complete or view.quieting_down:
            continue
        purchase = place_queue(situation, controller, budget).purchase
        count += sum(step.count for step in purchase.steps())
        refused += [held for held in purchase.held.values() if held.reason in {*_SHARED_BY_POOLS, Reason.MAX_AGENTS}]
    return count, refused


def _in_the_way(situation: Situation, idle: list[Agent], leaving: Collection[str], refused: list[Held]) -> list[Agent]:
    """Order the agents that count against the refused launches: of a full pool first, then idle longest."""
    full = {held.pool for held in refused if held.reason is Reason.MAX_AGENTS}
    shared = any(held.reason in _SHARED_BY_POOLS for held in refused)
    counting = [a for a in idle if a.record.instance_id not in leaving and (shared or a.pool.name in full)]
    since = situation.memory.idle_since
    return sorted(counting, key=lambda agent: (agent.pool.name not in full, since.get(agent.record.instance_id, situation.now)))


def _leaving(situation: Situation, decided: Decided) -> frozenset[str]:
    """Find idle cordoned agents: they count as freed capacity, except those that are held."""
    nodes, memory = {(step.controller, step.node) for step in decided if isinstance(step, Cordon)}, situation.memory
    out_of_use = [a for a in situation.agents if a.idle and (a.mark or (a.record.controller, a.record.node) in nodes)]
    held = {*memory.kept, *memory.stuck}
    return frozenset(a.record.instance_id for a in out_of_use if a.record.instance_id not in held and not situation.protected(a))
