"""A few more agents than the queue needs, so that no item waits for the slowest boot.

Jobs take the executors that are there first, so of more agents the quickest do the work. The others are surplus when they come, and
have cost a boot. At most half as many are added as are needed, or two: more bring little, and others who share the account want
machines, too. Requests are hedged in the same way: Dean and Barroso, The Tail at Scale, 2013 (https://doi.org/10.1145/2408776.2408794).
"""

from bisect import bisect_left
from functools import lru_cache
from itertools import pairwise
from math import exp, lgamma, log
from statistics import quantiles

_PARTS = 10
_FEW = 2


def worth_adding(boots: tuple[float, ...], *, items: int, agents: int, executors: int, usd_a_second: float, agent_usd: float) -> int:
    """Count the extra agents that are worth ``agent_usd`` each, for items that wait for ``agents`` to boot.

    ``boots``: how long agents of the pool took lately, in seconds. ``usd_a_second``: what a second of one item's waiting is worth.
    """
    if not items or not boots or min(boots) == max(boots):
        return 0
    times = _spread(boots)

    def is_too_many(added: int) -> bool:  # each one more brings less than the one before
        fewer, more = (_waiting_seconds(times, items, agents + n, executors) for n in (added, added + 1))
        return (fewer - more) * usd_a_second <= agent_usd

    return bisect_left(range(max(_FEW, agents // 2)), x=True, key=is_too_many)


@lru_cache(maxsize=1000)
def _spread(boots: tuple[float, ...]) -> tuple[float, ...]:
    """Return the quickest boot, the deciles, and the slowest boot."""
    return (min(boots), *quantiles(boots, n=_PARTS), max(boots))


def _waiting_seconds(times: tuple[float, ...], items: int, agents: int, executors: int) -> float:
    """Return the expected total wait of the items, summed over the moments at which agents come."""
    waiting = items * times[0]
    for part, (before, after) in enumerate(pairwise(times)):
        waiting += (after - before) * _left(items, agents, executors, (part + 0.5) / _PARTS)
    return waiting


@lru_cache(maxsize=10_000)
def _left(items: int, agents: int, executors: int, share: float) -> float:
    """Return how many items still wait when each agent has come with this probability."""
    left = 0.0
    for come in range(min(agents, (items - 1) // executors) + 1):
        ways = lgamma(agents + 1) - lgamma(come + 1) - lgamma(agents - come + 1)
        left += (items - executors * come) * exp(ways + come * log(share) + (agents - come) * log(1.0 - share))
    return left
