"""How soon demand comes back for the n-th agent of a pool, learned from its own past, and so how long that agent is worth keeping.

An agent that is kept costs its price until demand for it returns; one that is given up costs a boot, and the waiting for it. Where
returns were seen, the time that would have been cheapest over them is kept; before that, an agent is kept for as long as its
replacement would cost: then nobody pays more than twice what somebody pays who knows the future (the ski-rental rule).
Low and high numbers of agents are learned apart, since the first agent is missed sooner than the thirtieth.
"""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import ceil, log

from autoscaler.domain.memory import Returns, Window

# Returns within the first of these many seconds, within the second, ..., and later than the last.
EDGES = (0.0, 60.0, 120.0, 240.0, 480.0, 900.0, 1800.0, 2700.0, 3600.0, 5400.0, 7200.0, 14_400.0, 28_800.0)
# Each burst that returns makes those before it count a little less: the last hundred or so decide.
_FADES = 0.99
# Before anything was seen, a return is believed to be as likely within one doubling of the time as within the next; half never come.
_ANYWHERE_COUNTS, _POOL_COUNTS = 3.0, 5.0
_SOONEST_SECONDS, _NEVER_SHARE = 15.0, 0.5
_NONE = Returns(times=(0.0,) * (len(EDGES) + 1), jobs=(0.0,) * (len(EDGES) + 1))


def _anywhere() -> Returns:
    spans = [log(high / low) for low, high in pairwise((_SOONEST_SECONDS, *EDGES[1:]))]
    soon = _ANYWHERE_COUNTS * (1.0 - _NEVER_SHARE) / sum(spans)
    times = (0.0, *(soon * span for span in spans), _ANYWHERE_COUNTS * _NEVER_SHARE)
    return Returns(times=times, jobs=times)


_ANYWHERE = _anywhere()


def level_of(number: int) -> str:
    """Agents 1, 2-3, 4-7, 8-15, ... of a pool are learned together."""
    return str(number.bit_length())


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """Executors that are needed now: by jobs that run or wait, and by stages that are foreseen, whose agents boot before they come.

    ``guessed``: those that are worth having for jobs that may come. Agents are launched for them; they are not needed.
    """

    present: int
    foreseen: int = 0
    guessed: int = 0

    def agents(self, executors: int) -> int:
        """How many agents that takes, if packed."""
        return ceil((self.present + self.foreseen) / executors)


def note_returns(
    known: Mapping[str, Returns], window: Window | None, needed: Needed, now: float, *, executors: int, boots_a_job: float
) -> Mapping[str, Returns]:
    """Note for each agent that is needed again how long it was not, and the jobs that would wait for another one.

    ``window``: before this look. ``executors``: of one agent. ``boots_a_job``: how long a job usually runs there, in boots.
    """
    if window is None or not window.peaks or needed.agents(executors) <= window.peaks[-1][1]:
        return known
    noted = dict(known)
    there = window.peaks[-1][1]
    fresh = needed.present - there * executors - window.guessed  # jobs that nobody guessed at
    for number in range(there + 1, needed.agents(executors) + 1):
        level, share = level_of(number), 1.0 / _agents_like(number)
        place = bisect_left(EDGES, _seconds_since(window, number, now))
        with_it, without = (_spared(fresh, more * executors, boots_a_job) for more in (number - there, number - there - 1))
        before = noted.get(level, _NONE)
        noted[level] = Returns(times=_added(before.times, place, 1.0, share), jobs=_added(before.jobs, place, with_it - without, share))
    return noted


def _spared(jobs: float, executors: int, boots_a_job: float) -> float:
    """How many times the wait for a boot is spared to jobs by so many more executors: who is behind others waits for these."""
    spared, worth = 0.0, 1.0
    while executors > 0 and jobs > 0 and worth > 0:
        spared += min(jobs, executors) * worth
        jobs -= executors
        worth -= boots_a_job
    return spared


def guessed_in_time(window: Window | None, needed: Needed, boot_seconds: float, now: float) -> float:
    """Executors launched for guesses, as far as their agents have had the time to boot: all of them a boot after they were guessed at.

    A job that they await would not have waited, whether or not an agent was kept for it.
    """
    if window is None or not needed.guessed:
        return 0.0
    return min(float(needed.guessed), window.guessed + needed.guessed * (now - window.seen_at) / max(boot_seconds, 1.0))


def _agents_like(number: int) -> int:
    """How many agents a level has."""
    return 1 << (number.bit_length() - 1)


def _added(sums: tuple[float, ...], place: int, amount: float, share: float) -> tuple[float, ...]:
    faded = [known * _FADES**share for known in sums]
    faded[place] += amount * share
    return tuple(faded)


def _seconds_since(window: Window, number: int, now: float) -> float:
    """How long ago so many agents were needed; infinite where that is not remembered."""
    return next((now - at for at, needed in reversed(window.peaks) if needed >= number), float("inf"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What keeping an agent costs a second, and what not having kept it costs: a boot, and the waiting of each job."""

    usd_per_second: float
    boot_usd: float
    wait_usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """How long agents of a pool are kept without demand: what is cheapest over the returns seen, unless an operator has fixed it."""

    returns: Mapping[str, Returns]
    costs: Costs
    fixed_seconds: float | None
    at_most_seconds: float

    def seconds(self, number: int) -> float:
        """How long the n-th agent is kept."""
        if self.fixed_seconds is not None:
            return self.fixed_seconds
        return _cheapest_seconds(_believed(tuple(self.returns.items()), level_of(number)), self.costs, self.at_most_seconds)


@lru_cache(maxsize=1000)
def _believed(seen: tuple[tuple[str, Returns], ...], level: str) -> Returns:
    """What a level's own returns say, beside a few that are as those of the whole pool, beside a few that are as anywhere."""
    pool = _together([_ANYWHERE, *(returns for _, returns in seen)])
    share = _POOL_COUNTS / sum(pool.times)
    borrowed = Returns(times=tuple(n * share for n in pool.times), jobs=tuple(n * share for n in pool.jobs))
    return _together([borrowed, dict(seen).get(level, _NONE)])


def _together(levels: list[Returns]) -> Returns:
    return Returns(
        times=tuple(map(sum, zip(*(level.times for level in levels), strict=True))),
        jobs=tuple(map(sum, zip(*(level.jobs for level in levels), strict=True))),
    )


@lru_cache(maxsize=1000)
def _cheapest_seconds(returns: Returns, costs: Costs, at_most_seconds: float) -> float:
    """Try each edge: what came back before it was kept for, what came later was kept in vain and costs a boot and its waiting."""
    best_usd, best = float("inf"), EDGES[0]
    used, missed, waiting = 0.0, sum(returns.times), sum(returns.jobs)
    for low, high, times, jobs in zip((0.0, *EDGES), EDGES, returns.times, returns.jobs, strict=False):
        used, missed, waiting = used + times * (low + high) / 2, missed - times, waiting - jobs
        usd = (used + missed * high) * costs.usd_per_second + missed * costs.boot_usd + waiting * costs.wait_usd
        if usd < best_usd and high <= max(at_most_seconds, EDGES[0]):
            best_usd, best = usd, high
    return best


def needed_lately(window: Window, keep: Keeping, now: float) -> int:
    """The most agents that are still worth keeping: the n-th was needed no longer ago than it is kept."""
    most, below = 0, 0
    kept_for: dict[int, float] = {}  # seconds, by the bits of the number: its level
    for at, needed in reversed(window.peaks):
        number = needed
        while number > max(below, most):  # from above, a level at a time: all of a level are kept for as long
            if (bits := number.bit_length()) not in kept_for:
                kept_for[bits] = keep.seconds(number)
            if now - at <= kept_for[bits]:
                most = number
            number = (1 << (bits - 1)) - 1
        below = max(below, needed)
    return most
