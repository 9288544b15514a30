"""How long the n-th agent of a pool is worth keeping: the times that would have been cheapest over the returns seen.

A kept agent costs its price until demand for it returns; a terminated one costs a boot, and the waiting for it. Where a pool may stop
agents there are two times, until it is stopped and until it is terminated: a stopped one costs its disk, then a start, and the waiting
for that.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from autoscaler.domain.facts.memory import IdleReturns, Window
from autoscaler.domain.forecast.idle_returns import EDGES, STOPPED_EDGES, believed, level_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """The cost of keeping an agent for a second, and of not having kept it: a boot, and the waiting of each job."""

    usd_per_second: float
    boot_usd: float
    wait_usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepingStopped:
    """The cost of keeping an agent stopped for a second, and of starting it: until it is there, and the waiting of each job.

    ``stops_seconds``: how long one takes to stop. Who needs it meanwhile launches another one.
    """

    usd_per_second: float
    stops_seconds: float
    start_usd: float
    wait_usd: float
    at_most_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """How long agents of a pool are kept without demand: the cheapest time over past returns, unless an operator set it.

    ``stopped``: what it costs to keep them stopped after that; None: they are terminated.
    """

    idle_returns: Mapping[str, IdleReturns]
    costs: Costs
    fixed_seconds: float | None
    at_most_seconds: float
    stopped: KeepingStopped | None = None

    @property
    def edges(self) -> tuple[float, ...]:
        """The idle times that are told apart."""
        return EDGES if self.stopped is None else STOPPED_EDGES

    def seconds(self, number: int) -> float:
        """How long the n-th agent is kept running."""
        return self._cheapest(number).seconds if self.fixed_seconds is None else self.fixed_seconds

    def seconds_in_all(self, number: int) -> float:
        """How long the n-th agent is kept, first running and then stopped."""
        return max(self.seconds(number), self._cheapest(number).seconds_in_all)

    def spared_usd(self, number: int) -> float:
        """Dollars that keeping the n-th agent spares each time it idles; nothing where an operator set the time."""
        return self._cheapest(number).spared_usd if self.fixed_seconds is None else 0.0

    def _cheapest(self, number: int) -> "_Cheapest":
        returns = believed(tuple(self.idle_returns.items()), level_of(number), self.edges)
        if self.stopped is None:
            return _cheapest(returns, self.costs, self.at_most_seconds)
        return _cheapest_stopped(returns, self.costs, self.stopped, self.at_most_seconds, self.fixed_seconds)


@dataclass(frozen=True, slots=True)
class _Cheapest:
    seconds: float
    spared_usd: float
    seconds_in_all: float = 0.0


@lru_cache(maxsize=1000)
def _cheapest(returns: IdleReturns, costs: Costs, at_most_seconds: float) -> _Cheapest:
    """Try each edge: returns before it cost the keeping, later ones cost it in vain, and a boot and its waiting."""
    tried: list[tuple[float, float]] = []
    used, missed, waiting = 0.0, sum(returns.times), sum(returns.jobs)
    for low, high, times, jobs in zip((0.0, *EDGES), EDGES, returns.times, returns.jobs, strict=False):
        if high > max(at_most_seconds, EDGES[0]):
            break
        used, missed, waiting = used + times * (low + high) / 2, missed - times, waiting - jobs
        usd = (used + missed * high) * costs.usd_per_second + missed * costs.boot_usd + waiting * costs.wait_usd
        tried.append((usd, high))
    (at_once_usd, _), (usd, seconds) = tried[0], min(tried)
    return _Cheapest(seconds, (at_once_usd - usd) / sum(returns.times))


@lru_cache(maxsize=1000)
def _cheapest_stopped(
    returns: IdleReturns, costs: Costs, stopped: KeepingStopped, at_most_seconds: float, fixed_seconds: float | None
) -> _Cheapest:
    """Try each pair of edges: an agent is stopped after the first, and terminated after the second."""
    edges = STOPPED_EDGES
    runs = [place for place, edge in enumerate(edges) if not place or edge <= at_most_seconds]
    if fixed_seconds is not None:
        runs = [min(bisect_left(edges, fixed_seconds), len(edges) - 1)]
    pairs = [
        (first, last) for first in runs for last in range(first, len(edges)) if last == first or edges[last] <= stopped.at_most_seconds
    ]
    usd, seconds, in_all = min((_usd_of(returns, costs, stopped, *pair), edges[pair[0]], edges[pair[1]]) for pair in pairs)
    at_once_usd = _usd_of(returns, costs, stopped, 0, 0)
    return _Cheapest(seconds, (at_once_usd - usd) / sum(returns.times), in_all)


def _usd_of(returns: IdleReturns, costs: Costs, stopped: KeepingStopped, first: int, last: int) -> float:
    """What all returns cost where an agent runs until one edge, and is stopped until another."""
    edges, usd = STOPPED_EDGES, 0.0
    stops_at, ends_at = edges[first], edges[last]
    for place, (times, jobs) in enumerate(zip(returns.times, returns.jobs, strict=True)):
        if place > last:
            disk_usd = (ends_at - stops_at) * stopped.usd_per_second
            usd += times * (stops_at * costs.usd_per_second + disk_usd + costs.boot_usd) + jobs * costs.wait_usd
            continue
        after = (edges[place - 1] + edges[place]) / 2 if place else 0.0
        if place <= first:
            usd += times * after * costs.usd_per_second
            continue
        # Of the returns within these edges, those in vain: it stops just then.
        vain = min(1.0, max(0.0, stops_at + stopped.stops_seconds - edges[place - 1]) / (edges[place] - edges[place - 1]))
        ready_usd = vain * costs.boot_usd + (1.0 - vain) * stopped.start_usd
        usd += times * (stops_at * costs.usd_per_second + (after - stops_at) * stopped.usd_per_second + ready_usd)
        usd += jobs * (vain * costs.wait_usd + (1.0 - vain) * stopped.wait_usd)
    return usd


def needed_lately(window: Window, kept_seconds: Callable[[int], float], now: float) -> int:
    """Count the agents still worth keeping: the n-th was needed no longer ago than it is kept."""
    most, below = 0, 0
    kept_for: dict[int, float] = {}  # seconds, by the bits of the number: its level
    for at, needed in reversed(window.peaks):
        number = needed
        while number > max(below, most):  # from above, a level at a time: all of a level are kept for as long
            if (bits := number.bit_length()) not in kept_for:
                kept_for[bits] = kept_seconds(number)
            if now - at <= kept_for[bits]:
                most = number
            number = (1 << (bits - 1)) - 1
        below = max(below, needed)
    return most
