"""Jobs that announce other jobs: what comes minutes after a build of images has been asked for, as it did before.

For each job the one other job is looked for after which it was best to have an agent ready: by what that would have saved of waiting
in the times seen, less what agents would have idled, for nothing where it did not come.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from statistics import fmean

from autoscaler.domain.durations import Arrivals, Sequel
from autoscaler.domain.numbers import PASS_SECONDS
from autoscaler.domain.outlook import Outlook
from autoscaler.domain.pools import PoolView

# What follows within a minute came together, and what comes after half an hour is no sequel.
_AT_LEAST_SECONDS, _AT_MOST_SECONDS = 60.0, 1800.0
# Guesses that came true less often than this did so in vain where machines are dear: of those trusted at four in ten, one in ten came.
_HITS_TO_TRUST = 5
_LEAST_SHARE = 0.6
# Among many jobs some one has always come before by chance: so many times more are taken to have been in vain.
_DOUBT = 2.0
# A job is looked at again after it came this often, and then each eighth time.
_LOOKED_AT = {4, 6, 8, 12}
_LOOKED_AT_EACH = 8


def is_time_to_look(known: Arrivals) -> bool:
    """Tell whether a job that has just arrived has been seen often enough since its announcer was last looked for."""
    return known.count in _LOOKED_AT or known.count % _LOOKED_AT_EACH == 0


def announcer_of(job: str, arrivals: Mapping[str, Arrivals], pool: PoolView, now: float) -> Sequel | None:
    """Find the job after which this one, which has just arrived, was best expected; None where that would not have paid."""
    found: Sequel | None = None
    most_usd = 0.0
    mine = arrivals[job].times
    for name, other in arrivals.items():
        if name == job or now - other.times[-1] > _AT_MOST_SECONDS:
            continue
        if not any(_AT_LEAST_SECONDS <= now - at <= _AT_MOST_SECONDS for at in reversed(other.times)):
            continue
        outcomes = _outcomes(other.times, mine, now)
        delays = tuple(round(delay, 1) for delay in outcomes if delay is not None)
        if len(delays) < max(_HITS_TO_TRUST, _LEAST_SHARE * len(outcomes)):
            continue
        usd = _worth_usd(outcomes, pool) / sum(at >= other.times[0] for at in mine)
        if usd > most_usd:
            found, most_usd = Sequel(after=name, delays=delays, missed=len(outcomes) - len(delays)), usd
    return found


def outlooks_after(sequel: Sequel, arrivals: Mapping[str, Arrivals], mine: Arrivals, now: float) -> Iterator[Outlook]:
    """When a job may come, for each time that it was announced and has not come yet."""
    other = arrivals.get(sequel.after)
    if other is None or now - other.times[-1] > _AT_MOST_SECONDS:
        return
    lately = [at for at in other.times if now - at <= _AT_MOST_SECONDS]
    for at in lately[len(_outcomes(lately, mine.times, now)) :]:
        follow = sorted(delay - (now - at) for delay in sequel.delays if delay > now - at)
        if follow:
            share = len(follow) / (len(follow) + sequel.missed + _DOUBT)
            yield Outlook(soon=follow[len(follow) // 4], late=fmean(follow), ends=follow[-1], share=share)


def _outcomes(first: Iterable[float], then: tuple[float, ...], now: float) -> list[float | None]:
    """Give each announcement the arrival that follows it, each arrival once: the delay, None for nothing; not those still to come."""
    outcomes: list[float | None] = []
    place = 0
    for at in first:
        place = bisect_left(then, at + _AT_LEAST_SECONDS, place)
        if place < len(then) and then[place] <= at + _AT_MOST_SECONDS:
            outcomes.append(then[place] - at)
            place += 1
        elif now - at > _AT_MOST_SECONDS and at > then[0] - _AT_MOST_SECONDS:
            outcomes.append(None)
    return outcomes


def _worth_usd(outcomes: list[float | None], pool: PoolView) -> float:
    """What it would have saved to have agents in time. Of many jobs some one always came before by chance: both halves must have paid."""
    half = len(outcomes) // 2
    return 2 * min(_saved_usd(outcomes[:half], pool), _saved_usd(outcomes[half:], pool))


def _saved_usd(outcomes: list[float | None], pool: PoolView) -> float:
    delays = sorted(delay for delay in outcomes if delay is not None)
    if not delays:
        return 0.0
    ready = max(delays[len(delays) // 4], pool.boot_seconds + PASS_SECONDS)
    saved = sum(max(0.0, pool.boot_seconds - max(0.0, ready - delay)) for delay in delays)
    in_vain = (len(outcomes) - len(delays) + _DOUBT / 2) * (pool.boot_seconds + delays[-1] - delays[0])
    idle = sum(max(0.0, delay - ready) for delay in delays) + in_vain
    return (saved * pool.pool.wait_usd_per_hour - idle * pool.usd_per_hour / pool.pool.executors) / 3600.0
