"""Agents in capacity that ends: they take no new builds in time, so that EC2 ends no build with their machines."""

from collections.abc import Iterator

from autoscaler.domain.facts.nodes import MarkClass
from autoscaler.domain.facts.plan import Cordon
from autoscaler.domain.facts.reasons import Reason
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.steps import Decided, cordon, leaving
from autoscaler.domain.wording import duration


def capacity_ends(situation: Situation, controller: str, decided: Decided) -> Iterator[Cordon]:
    """Cordon the agents of a reservation or a block that is about to end, at once and for good; builds on them go on."""
    taken = leaving(decided, controller)
    for pool in situation.pools_of(controller).values():
        capacity = pool.spec.capacity
        if capacity is None or situation.now < pool.closes_at:
            continue
        left = capacity.leaves_at - situation.now
        what = f"EC2 ends the machines of {capacity.id}" if capacity.block else f"{capacity.id} ends"
        detail = f"{what} in {duration(left)}" if left > 0 else f"{capacity.id} is over"
        for agent in pool.ready:
            if agent.record.node not in taken and not situation.protected(agent):
                yield cordon(situation, agent, MarkClass.USED_UP, Reason.CAPACITY_ENDS, detail)
