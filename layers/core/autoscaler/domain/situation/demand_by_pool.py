"""Demand by pool: each item that waits is counted for one of the pools that could serve it."""

from collections import Counter

from autoscaler.domain.situation.demand import Demand
from autoscaler.domain.situation.wants import home_of


def starved_by_pool(demand: Demand) -> dict[str, int]:
    """Count starved items, mature or not, each for one pool: the one with the fewest labels."""
    return dict(Counter(home_of(want).name for want in demand.wants))


def executors_by_pool(demand: Demand) -> dict[str, int]:
    """Count the executors that starved items want, likewise; of a pool's agent none wants more than it has.

    An item that free executors refuse wants an agent of its own.
    """
    wanted: dict[str, int] = {}
    for want in demand.wants:
        home = home_of(want)
        wanted[home.name] = wanted.get(home.name, 0) + (home.executors if want.refused_by else min(want.weight, home.executors))
    return wanted
