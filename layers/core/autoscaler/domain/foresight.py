"""What is to come in each pool, by all that announces it: a pipeline's stage, another job, the time of day, the beginning of a burst."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from autoscaler.domain import bursts, growth, rhythms, sequels, stages
from autoscaler.domain.bursts import Needed
from autoscaler.domain.durations import Learned
from autoscaler.domain.outlook import Outlook, is_worth_keeping, is_worth_launching
from autoscaler.domain.pools import PoolView


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen:
    """Executors that are worth having now for what will need them, and why.

    ``stages``: those of them for stages of runs under way. They are as good as needed, and kept like what was; a guess at jobs is not.
    ``launches``: those of them that are worth it even where an agent has to be launched for them.
    """

    executors: int
    stages: int
    launches: int
    why: str


NOTHING = Foreseen(executors=0, stages=0, launches=0, why="")


def foresee(learned: Learned, pools: Mapping[str, PoolView], starved: Mapping[str, int], now: float) -> dict[str, Foreseen]:
    """Count what is worth having now, by pool: another look later it would come too late. ``starved``: items by pool."""
    staged = stages.due(learned, pools, now, is_worth_keeping)
    launches = stages.due(learned, pools, now, is_worth_launching) if staged else Counter[str]()
    counts, whys = Counter(staged), dict.fromkeys(staged, "a pipeline's next stage")
    for job, outlooks, why in _jobs(learned, pools, now):
        name = learned.arrivals[job].pool
        counts[name] += len(outlooks)
        launches[name] += sum(is_worth_launching(outlook, pools[name], 1) for outlook in outlooks)
        whys.setdefault(name, why)
    for name, pool in pools.items():
        if pool.growths and (more := _of_burst(pool, starved.get(name, 0), staged[name])) > counts[name] - staged[name]:
            counts[name] = launches[name] = staged[name] + more
            whys[name] = "bursts like this one grew"
    return {
        name: Foreseen(executors=count, stages=staged[name], launches=launches[name], why=whys[name])
        for name, count in counts.items()
        if count > 0
    }


def _of_burst(pool: PoolView, starved: int, staged: int) -> int:
    needed = Needed(present=pool.in_use(starved), foreseen=staged)
    burst = bursts.follow_burst(pool.window, needed, pool.now, executors=pool.pool.executors, boot_seconds=pool.boot_seconds)
    return growth.to_come(burst, pool)


def _jobs(learned: Learned, pools: Mapping[str, PoolView], now: float) -> Iterator[tuple[str, list[Outlook], str]]:
    """Jobs that are worth an agent before they are there: which, each time, and why. One that is announced twice over comes once."""
    for job, known in learned.arrivals.items():
        if not known.expected and job not in learned.sequels:
            continue
        pool, sequel = pools.get(known.pool), learned.sequels.get(job)
        if pool is None:
            continue
        by_time = _worth_having(rhythms.outlooks_by_time(known, now), pool)
        after = _worth_having(sequels.outlooks_after(sequel, learned.arrivals, known, now), pool) if sequel else []
        if sequel and len(after) >= max(len(by_time), 1):
            yield job, after, f"{job} follows {sequel.after}"
        elif by_time:
            yield job, by_time, f"{job} comes at this time"


def _worth_having(outlooks: Iterator[Outlook], pool: PoolView) -> list[Outlook]:
    return [outlook for outlook in outlooks if is_worth_keeping(outlook, pool, 1)]
