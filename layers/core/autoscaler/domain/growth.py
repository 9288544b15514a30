"""How bursts of demand grow, learned from those before: who sees the first jobs of a burst launches for those that are to come.

Of the bursts that a pool had, those tell what this one will do that were once as large, and stayed so for as long as it has. One more,
which came to nothing, is believed to have been among them. A further agent is worth launching now where the jobs that would have to
wait for it later lose more by that than it costs to have it too early, and now and then in vain.
"""

from collections.abc import Iterator
from math import ceil

from autoscaler.domain.bursts import is_burst_over
from autoscaler.domain.memory import Burst, Growth
from autoscaler.domain.pools import PoolView

# Of thirty, large ones that come seldom are forgotten too soon; a hundred and twenty teach no more than sixty.
_BURSTS_KEPT = 60
_BELIEVED_TO_END = 1

_Ahead = tuple[tuple[float, int], ...]  # (seconds from now, executors needed by then)


def note_growth(known: tuple[Growth, ...], burst: Burst) -> tuple[Growth, ...]:
    """Note how a burst that is over grew."""
    began_at = burst.rises[0][0]
    return (*known, Growth(steps=tuple((round(at - began_at, 1), beyond) for at, beyond, _ in burst.rises)))[-_BURSTS_KEPT:]


def to_come(burst: Burst | None, pool: PoolView) -> int:
    """Count the executors that are worth having now beyond those which a burst needs already; 0 where there is no burst."""
    if burst is None or is_burst_over(burst, pool.now, pool.boot_seconds):
        return 0
    executors, (rose_at, needed, _) = pool.pool.executors, burst.rises[-1]
    futures = [ahead for growth in pool.growths if (ahead := _ahead(growth, needed, pool.now - rose_at)) is not None]
    taken, more = ceil(needed / executors) * executors, 0  # whole agents
    while _is_worth_having(futures, taken + more, pool):
        more += executors
    return taken + more - needed if more else 0


def _ahead(growth: Growth, needed: int, stayed_seconds: float) -> _Ahead | None:
    """How a burst grew on from where it needed as much, and had stayed so for so long; None where it never did."""
    reached = next((age for age, beyond in growth.steps if beyond >= needed), None)
    if reached is None:
        return None
    ahead = tuple((age - reached - stayed_seconds, beyond) for age, beyond in growth.steps if beyond > needed)
    return None if ahead and ahead[0][0] <= 0 else ahead


def _is_worth_having(futures: list[_Ahead], taken: int, pool: PoolView) -> bool:
    """Tell whether it pays to launch one agent more now, not when its first job comes."""
    executors = range(taken + 1, taken + pool.pool.executors + 1)
    comes = [times for ahead in futures if (times := list(_times(ahead, executors)))]
    in_vain = len(futures) + _BELIEVED_TO_END - len(comes)
    spared_seconds = sum(min(at, pool.boot_seconds) for times in comes for at in times)
    paid_seconds = sum(times[0] for times in comes) + in_vain * pool.vain_seconds
    return spared_seconds * pool.pool.wait_usd_per_hour > paid_seconds * pool.usd_per_hour


def _times(ahead: _Ahead, executors: range) -> Iterator[float]:
    """In how many seconds each of these executors is needed, as far as they are."""
    for number in executors:
        if (at := next((at for at, beyond in ahead if beyond >= number), None)) is None:
            return
        yield at
