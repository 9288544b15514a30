"""Expected demand of each pool, from pipeline stages, followers, schedules and growing bursts.

Past bursts that reached the present size, and stayed there as long, predict how a burst goes on. One more is assumed to have ended
there. Launching a further agent now pays if the jobs that would wait for it later lose more than it costs to have it too early and,
now and then, in vain.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from math import ceil

from autoscaler.domain.facts.memory import Burst, Growth, Learned, Window
from autoscaler.domain.forecast.job_patterns import (
    AgentCosts,
    ArrivalForecast,
    due,
    forecasts_after,
    forecasts_by_time,
    is_worth_keeping,
    is_worth_launching,
)
from autoscaler.domain.forecast.keeping import Needed, follow_burst, is_burst_over


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Executors worth having now for expected jobs, and why.

    ``stages``: those of them for stages of runs under way. They are as good as needed, and kept like what was; a guess at jobs is not.
    ``launches``: those of them that are worth it even where an agent has to be launched for them.
    """

    executors: int
    stages: int
    launches: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prospects:
    """The past and present of a pool, as forecasts see it. ``in_use``: executors for builds, items and warm ones.

    ``returned``: those of them whose builds came back with their agents since the last look.
    ``costs``: of one more agent that boots; ``starting``: of one that is stopped, if any is; ``at_hand``: executors of those that are
    stopped, and free ones.
    """

    costs: AgentCosts
    in_use: int
    returned: int
    window: Window | None
    growths: tuple[Growth, ...]
    starting: AgentCosts | None = None
    at_hand: int = 0
    declined: frozenset[str] = frozenset()  # jobs that are no demand for the pool


NOTHING = Forecast(executors=0, stages=0, launches=0, why="")


def forecast_pools(learned: Learned, pools: Mapping[str, Prospects], now: float) -> dict[str, Forecast]:
    """Count the executors worth having now, by pool: another look later would be too late.

    Stopped agents may be started later than others launched. A pool that has too few of them for all that comes launches in time.
    """
    boot_costs = {name: pool.costs for name, pool in pools.items()}
    with_stopped = {name: pool for name, pool in pools.items() if pool.starting is not None}
    if not with_stopped:
        return _forecast(learned, pools, boot_costs, now)
    if_all_boot = _forecast(learned, with_stopped, boot_costs, now)
    expected = {name: forecast.executors for name, forecast in if_all_boot.items()}
    start_costs = {name: pool.starting for name, pool in with_stopped.items() if pool.starting and expected.get(name, 0) <= pool.at_hand}
    return _forecast(learned, pools, boot_costs | start_costs, now)


def _forecast(learned: Learned, pools: Mapping[str, Prospects], costs: Mapping[str, AgentCosts], now: float) -> dict[str, Forecast]:
    declined = frozenset((job, name) for name, pool in pools.items() for job in pool.declined)
    staged = due(learned, costs, now, is_worth_keeping, declined)
    launches = due(learned, costs, now, is_worth_launching, declined) if staged else Counter[str]()
    counts, whys = Counter(staged), dict.fromkeys(staged, "a pipeline's next stage")
    for job, arrivals_ahead, why in _jobs(learned, costs, now, declined):
        name = learned.arrivals[job].pool
        counts[name] += len(arrivals_ahead)
        launches[name] += sum(is_worth_launching(arrival, costs[name], 1) for arrival in arrivals_ahead)
        whys.setdefault(name, why)
    for name, pool in pools.items():
        if pool.growths and (more := _of_burst(pool, costs[name], staged[name], now)) > counts[name] - staged[name]:
            counts[name] = launches[name] = staged[name] + more
            whys[name] = "bursts like this one grew"
    return {
        name: Forecast(executors=count, stages=staged[name], launches=launches[name], why=whys[name])
        for name, count in counts.items()
        if count > 0
    }


def _of_burst(pool: Prospects, costs: AgentCosts, staged: int, now: float) -> int:
    """Count the executors worth having now beyond a burst's present need; 0 if there is no burst.

    ``costs``: of the agents for it. A burst is followed for as long as a boot takes, whatever they are.
    """
    present, boot_seconds = Needed(present=pool.in_use, forecast=staged, returned=pool.returned), pool.costs.boot_seconds
    burst = follow_burst(pool.window, present, now, executors=costs.executors, boot_seconds=boot_seconds)
    if burst is None or is_burst_over(burst, now, boot_seconds):
        return 0
    executors, (rose_at, needed, _) = costs.executors, burst.rises[-1]
    futures = [ahead for growth in pool.growths if (ahead := _ahead(growth, needed, now - rose_at)) is not None]
    taken, more = ceil(needed / executors) * executors, 0  # whole agents
    while _is_worth_having(futures, taken + more, costs):
        more += executors
    return taken + more - needed if more else 0


def _jobs(
    learned: Learned, pools: Mapping[str, AgentCosts], now: float, declined: Collection[tuple[str, str]]
) -> Iterator[tuple[str, list[ArrivalForecast], str]]:
    """Find jobs worth an agent before they come, and why. A job that is announced twice comes once."""
    for job, known in learned.arrivals.items():
        if not known.expected and job not in learned.followers:
            continue
        costs, follower = pools.get(known.pool), learned.followers.get(job)
        if costs is None or (job, known.pool) in declined:
            continue
        by_time = _worth_having(forecasts_by_time(known, now), costs)
        after = _worth_having(forecasts_after(follower, learned.arrivals, known, now), costs) if follower else []
        if follower and len(after) >= max(len(by_time), 1):
            yield job, after, f"{job} follows {follower.after}"
        elif by_time:
            yield job, by_time, f"{job} comes at this time"


def _worth_having(arrivals_ahead: Iterator[ArrivalForecast], costs: AgentCosts) -> list[ArrivalForecast]:
    return [arrival for arrival in arrivals_ahead if is_worth_keeping(arrival, costs, 1)]


# Of thirty, large ones that come seldom are forgotten too soon; a hundred and twenty teach no more than sixty.
_BURSTS_KEPT = 60
_BELIEVED_TO_END = 1
_Ahead = tuple[tuple[float, int], ...]  # (seconds from now, executors needed by then)


def note_growth(known: tuple[Growth, ...], burst: Burst) -> tuple[Growth, ...]:
    """Note how a burst that is over grew."""
    began_at = burst.rises[0][0]
    return (*known, Growth(steps=tuple((round(at - began_at, 1), beyond) for at, beyond, _ in burst.rises)))[-_BURSTS_KEPT:]


def _ahead(growth: Growth, needed: int, stayed_seconds: float) -> _Ahead | None:
    """Return how a past burst went on from the present size; None where it never stayed there for so long."""
    reached = next((age for age, beyond in growth.steps if beyond >= needed), None)
    if reached is None:
        return None
    ahead = tuple((age - reached - stayed_seconds, beyond) for age, beyond in growth.steps if beyond > needed)
    return None if ahead and ahead[0][0] <= 0 else ahead


def _is_worth_having(futures: list[_Ahead], taken: int, costs: AgentCosts) -> bool:
    """Tell whether launching one more agent now pays, compared with launching it for its first job."""
    executors = range(taken + 1, taken + costs.executors + 1)
    comes = [times for ahead in futures if (times := list(_times(ahead, executors)))]
    if not comes:
        return False
    in_vain = len(futures) + _BELIEVED_TO_END - len(comes)
    spared_seconds = sum(min(at, costs.boot_seconds) for times in comes for at in times)
    paid_seconds = sum(times[0] for times in comes) + in_vain * costs.vain_seconds
    return spared_seconds * costs.wait_usd_per_hour > paid_seconds * costs.usd_per_hour


def _times(ahead: _Ahead, executors: range) -> Iterator[float]:
    """Return in how many seconds each of these executors is needed, up to the first that is not."""
    for number in executors:
        if (at := next((at for at, beyond in ahead if beyond >= number), None)) is None:
            return
        yield at
