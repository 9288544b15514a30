"""When jobs were asked for: noted from look to look, with what that makes one expect."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from autoscaler.domain import rhythms, sequels
from autoscaler.domain.durations import Arrivals, Borne, Learned, Sequel
from autoscaler.domain.pools import PoolView

_TIMES_KEPT = 20
_JOBS_KEPT = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A job that was asked for since the last look."""

    job: str
    pool: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """When jobs were asked for, as it is known now, what announces which, and what has come of guesses by the clock."""

    arrivals: Mapping[str, Arrivals]
    sequels: Mapping[str, Sequel]
    rhythms: Mapping[str, Borne]


def note_arrivals(before: Learned, arrived: Iterable[Arrival], pools: Mapping[str, PoolView], now: float) -> Noted:
    """Note what came and what did not, and look again for what announces it."""
    in_vain = [kind for seen in before.arrivals.values() for kind in rhythms.come_to_nothing(seen, now)]
    borne = rhythms.note_borne(before.rhythms, in_vain, came=False)
    known = {job: _rolled_on(seen, now) for job, seen in before.arrivals.items()}
    came = []
    for arrival in arrived:
        seen = known.pop(arrival.job, Arrivals(pool=arrival.pool, times=(), count=0))
        borne = rhythms.note_borne(borne, rhythms.come_true(seen, arrival.at), came=True)
        known[arrival.job] = _noted(seen, arrival, borne)  # the jobs seen last stand last
        came.append(arrival.job)
    follows = dict(before.sequels)
    for job in came:
        pool = pools.get(known[job].pool)
        if pool is not None and sequels.is_time_to_look(known[job]):
            follows.pop(job, None)
            found = sequels.announcer_of(job, known, pool, now)
            if found is not None:
                follows[job] = found
    kept = dict(list(known.items())[-_JOBS_KEPT:])
    return Noted(arrivals=kept, sequels={job: sequel for job, sequel in follows.items() if job in kept}, rhythms=borne)


def _rolled_on(seen: Arrivals, now: float) -> Arrivals:
    expected = rhythms.roll_on(seen, now)
    return seen if expected is seen.expected else replace(seen, expected=expected)


def _noted(seen: Arrivals, arrival: Arrival, borne: Mapping[str, Borne]) -> Arrivals:
    return Arrivals(
        pool=arrival.pool,
        # A build that nobody saw wait may turn out to have come before an item that was seen.
        times=tuple(sorted((*seen.times, round(arrival.at, 1)))[-_TIMES_KEPT:]),
        count=seen.count + 1,
        expected=rhythms.expect(seen, arrival.at, borne) if seen.times else (),
    )
