"""How long the n-th agent of a pool is worth keeping: the times that would have been cheapest over the returns seen.

A kept agent costs its price until demand for it returns; a terminated one costs a boot, and the waiting for it. Where a pool may stop
agents there are two times, until it is stopped and until it is terminated: a stopped one costs its disk, then a start, and the waiting
for that.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import ceil, inf, log

from autoscaler.domain.facts.memory import Burst, IdleReturns, Window
from autoscaler.domain.facts.snapshot import LOOK_GAP_SECONDS

# How soon demand for the n-th agent of a pool comes back.
#
# Before any return was seen, demand is expected back at any time, and half the time never. Low and high numbers of agents are learned
# apart, since the first agent is missed sooner than the thirtieth. Where little is known of a number, near numbers count more than far
# ones.
#
# Demand returns in bursts. A burst begins with the look that needs more agents than the one before, and lasts as long as a boot takes:
# an agent that is launched for its first job boots while the next jobs come, and they wait for it, too. So the lesson of a burst does
# not depend on how often the schedule looks.


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """Executors needed now: by running and waiting jobs, and by forecast stages, whose agents boot before they come.

    ``guessed``: those that are worth having for jobs that may come. Agents are launched for them; they are not needed.
    ``returned``: those of ``present`` whose builds came back with their agents since the last look. They are needed, and no new demand.
    """

    present: int
    forecast: int = 0
    guessed: int = 0
    returned: int = 0

    def agents(self, executors: int) -> int:
        """How many agents these executors take, if packed."""
        return ceil((self.present + self.forecast) / executors)


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """An agent that was needed again: its idle seconds (infinite: unknown), and the waits for a boot that it would have spared."""

    number: int
    seconds: float
    waits: float


def next_peaks(window: Window | None, needed: int, now: float, length_seconds: float) -> tuple[tuple[float, int], ...]:
    """Record what is needed now; what was needed less, or too long ago, says nothing any more. A clock may have been ahead."""
    known = [(min(at, now), most) for at, most in window.peaks] if window else []
    if window and known and now - window.seen_at > LOOK_GAP_SECONDS:
        known[-1] = now, known[-1][1]  # nobody looked: what was needed in the last look may have been needed until now
    kept = [peak for peak in known if peak[0] >= now - length_seconds]
    while kept and kept[-1][1] <= needed:
        kept.pop()
    return *kept, (now, needed)


def follow_burst(window: Window | None, needed: Needed, now: float, *, executors: int, boot_seconds: float) -> Burst | None:
    """Follow rising demand. ``window``: before this look; ``executors``: of one agent."""
    if window is None or not window.peaks:
        return None
    burst = None if window.burst is None or is_burst_over(window.burst, now, boot_seconds) else window.burst
    before = window.peaks
    if needed.returned:  # builds that came back with their agents count as if they had been there at the last look
        before = next_peaks(window, ceil((before[-1][1] * executors + needed.returned) / executors), window.seen_at, inf)
    peaks, rises, so_far = (burst.peaks, burst.rises, burst.rises[-1][1]) if burst else (before, (), 0)
    there = peaks[-1][1] * executors
    beyond = needed.present + needed.forecast - there
    if beyond <= so_far:
        return burst
    unexpected = max(0.0, needed.present - there - so_far - window.guessed)
    return Burst(peaks=peaks, rises=(*rises, (now, beyond, unexpected)))


def is_burst_over(burst: Burst, now: float, boot_seconds: float) -> bool:
    """Tell whether an agent that was launched when the burst began would have booted by now."""
    return now - burst.rises[0][0] >= boot_seconds


def agents_missed(burst: Burst, *, executors: int, boot_seconds: float) -> Iterator[Missed]:
    """Name the agents that a burst needed again, each with the waits of the jobs on its own executors."""
    boot_seconds, there = max(boot_seconds, 1.0), burst.peaks[-1][1]
    # When each executor beyond the present agents was first needed, and whether for an unexpected job.
    came, so_far = list[tuple[float, bool]](), 0
    for at, beyond, unexpected in burst.rises:
        alone = min(round(unexpected), beyond - so_far)
        came += [(at, True)] * alone + [(at, False)] * (beyond - so_far - alone)
        so_far = beyond
    for more, first in enumerate(range(0, len(came), executors), start=1):
        its_own, at = came[first : first + executors], came[first][0]
        waits = sum(max(0.0, 1.0 - (later - at) / boot_seconds) for later, is_alone in its_own if is_alone)
        seconds = next((at - peak for peak, needed in reversed(burst.peaks) if needed >= there + more), inf)
        yield Missed(number=there + more, seconds=seconds, waits=waits)


def guessed_in_time(window: Window | None, needed: Needed, boot_seconds: float, now: float) -> float:
    """Return the share of speculative executors whose agents have had time to boot.

    A job that they await would not have waited, whether or not an agent was kept for it.
    """
    if window is None or not needed.guessed:
        return 0.0
    return min(float(needed.guessed), window.guessed + needed.guessed * (now - window.seen_at) / max(boot_seconds, 1.0))


# Returns within the first of these many seconds, within the second, ..., and later than the last.
EDGES = (0.0, 60.0, 120.0, 240.0, 480.0, 900.0, 1800.0, 2700.0, 3600.0, 5400.0, 7200.0, 14_400.0, 28_800.0)
# Of pools that keep stopped agents, for days.
STOPPED_EDGES = (*EDGES, 43_200.0, 57_600.0, 86_400.0, 172_800.0, 259_200.0, 604_800.0)
# Each burst that returns makes those before it count a little less: the last hundred or so decide.
_FADES = 0.99
# Before anything was seen, a return is believed to be as likely within one doubling of the time as within the next; half never come.
_ANYWHERE_COUNTS, _BORROWED_COUNTS = 3.0, 5.0
_NEXT_LEVEL_SHARE = 0.25
_DAY_SECONDS = 86_400.0
_SOONEST_SECONDS, _NEVER_SHARE = 15.0, 0.5


@lru_cache
def _none(edges: tuple[float, ...]) -> IdleReturns:
    nothing = (0.0,) * (len(edges) + 1)
    return IdleReturns(times=nothing, jobs=nothing)


@lru_cache
def _anywhere(edges: tuple[float, ...]) -> IdleReturns:
    spans = [log(high / low) for low, high in pairwise((_SOONEST_SECONDS, *edges[1:]))]
    soon = _ANYWHERE_COUNTS * (1.0 - _NEVER_SHARE) / sum(spans)
    never = _ANYWHERE_COUNTS * _NEVER_SHARE
    times = [0.0, *(soon * span for span in spans), never]
    if edges[-1] > _DAY_SECONDS:  # people and schedules live by the day: half of what is not needed again soon is the next day
        times[edges.index(_DAY_SECONDS)] += never / 2
        times[-1] -= never / 2
    return IdleReturns(times=tuple(times), jobs=tuple(times))


def _fitted(returns: IdleReturns, edges: tuple[float, ...]) -> IdleReturns:
    """Fit what was learned to these edges, where the pool began to keep stopped agents since, or keeps none any more."""
    if len(returns.times) == len(edges) + 1:
        return returns
    return IdleReturns(times=_fit(returns.times, len(edges)), jobs=_fit(returns.jobs, len(edges)))


def _fit(sums: tuple[float, ...], edges: int) -> tuple[float, ...]:
    """What came later than all edges known then counts as later than all edges now."""
    within = min(edges, len(sums) - 1)
    return (*sums[:within], *(0.0,) * (edges - within), sum(sums[within:]))


def level_of(number: int) -> str:
    """Name the level of an agent: agents 1, 2-3, 4-7, 8-15, ... of a pool are learned together."""
    return str(number.bit_length())


def note_returns(known: Mapping[str, IdleReturns], missed: Iterable[Missed], edges: tuple[float, ...] = EDGES) -> Mapping[str, IdleReturns]:
    """Note the idle time of each agent that was needed again, and the waits that keeping it would have spared."""
    noted = {level: _fitted(returns, edges) for level, returns in known.items()}
    for agent in missed:
        level, share = level_of(agent.number), 1.0 / (1 << (agent.number.bit_length() - 1))  # of as many agents as the level has
        place, before = bisect_left(edges, agent.seconds), noted.get(level, _none(edges))
        noted[level] = IdleReturns(times=_added(before.times, place, 1.0, share), jobs=_added(before.jobs, place, agent.waits, share))
    return noted


def _added(sums: tuple[float, ...], place: int, amount: float, share: float) -> tuple[float, ...]:
    faded = [known * _FADES**share for known in sums]
    faded[place] += amount * share
    return tuple(faded)


@lru_cache(maxsize=1000)
def believed(seen: tuple[tuple[str, IdleReturns], ...], level: str, edges: tuple[float, ...]) -> IdleReturns:
    """Combine a level's own returns with a few of its neighbours and a few of the prior."""
    fitted = {other: _fitted(returns, edges) for other, returns in seen}
    near = [_part(returns, _NEXT_LEVEL_SHARE ** abs(int(level) - int(other))) for other, returns in fitted.items()]
    around = _together([_anywhere(edges), *near])
    return _together([_part(around, _BORROWED_COUNTS / sum(around.times)), fitted.get(level, _none(edges))])


def _part(returns: IdleReturns, share: float) -> IdleReturns:
    return IdleReturns(times=tuple(n * share for n in returns.times), jobs=tuple(n * share for n in returns.jobs))


def _together(levels: list[IdleReturns]) -> IdleReturns:
    return IdleReturns(
        times=tuple(map(sum, zip(*(level.times for level in levels), strict=True))),
        jobs=tuple(map(sum, zip(*(level.jobs for level in levels), strict=True))),
    )


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
