"""When jobs were asked for: noted from look to look, with what that makes one expect."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from autoscaler.domain import rhythms, sequels
from autoscaler.domain.durations import Arrivals, Learned, Sequel
from autoscaler.domain.pools import PoolView

_TIMES_KEPT = 20
_JOBS_KEPT = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A job that was asked for since the last look."""

    job: str
    pool: str
    at: float


def note_arrivals(
    before: Learned, arrived: Iterable[Arrival], pools: Mapping[str, PoolView], now: float
) -> tuple[dict[str, Arrivals], dict[str, Sequel]]:
    """Note what came, and look again for what announces it: arrivals and sequels as they are now."""
    known = {job: _rolled_on(seen, now) for job, seen in before.arrivals.items()}
    follows = dict(before.sequels)
    for job in [_note(known, arrival) for arrival in arrived]:
        pool = pools.get(known[job].pool)
        if pool is not None and sequels.is_time_to_look(known[job]):
            follows.pop(job, None)
            found = sequels.announcer_of(job, known, pool, now)
            if found is not None:
                follows[job] = found
    kept = dict(list(known.items())[-_JOBS_KEPT:])
    return kept, {job: sequel for job, sequel in follows.items() if job in kept}


def _rolled_on(seen: Arrivals, now: float) -> Arrivals:
    expected = rhythms.roll_on(seen, now)
    return seen if expected is seen.expected else replace(seen, expected=expected)


def _note(known: dict[str, Arrivals], arrival: Arrival) -> str:
    """Note one, and say its job; the jobs seen last stand last."""
    seen = known.pop(arrival.job, Arrivals(pool=arrival.pool, times=(), count=0))
    known[arrival.job] = Arrivals(
        pool=arrival.pool,
        times=(*seen.times, round(arrival.at, 1))[-_TIMES_KEPT:],
        count=seen.count + 1,
        expected=rhythms.expect(seen, arrival.at) if seen.times else (),
    )
    return arrival.job
