"""Wants: items that wait for an executor, with the pools that may serve them."""

from dataclasses import dataclass

from autoscaler.domain.facts.fleet import Pool
from autoscaler.domain.facts.snapshot import QueueItem
from autoscaler.domain.labels import LabelExpression


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """A starved item, and what may serve it: pools to launch in, and a test for nodes of no pool."""

    item: QueueItem
    pools: tuple[Pool, ...]
    expression: LabelExpression | None  # None: it names a node, or no label at all
    weight: int = 1  # executors that it takes; an agent that has fewer it takes alone
    refused_by: tuple[str, ...] = ()  # free nodes that do not take it: an agent is tried for it
    declined_by: frozenset[str] = frozenset()  # pools whose labels would do, and that decline its job

    @property
    def mature(self) -> bool:
        """It has waited long enough to count; an executor may have become free by itself until then."""
        return self.item.waiting_seconds >= min([pool.queue_maturity_seconds for pool in self.pools])


def home_of(want: Want) -> Pool:
    """Choose the pool that an item is counted for: the one with the fewest labels."""
    return min(want.pools, key=lambda pool: (len(pool.labels), pool.name))
