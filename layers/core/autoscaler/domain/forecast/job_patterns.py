"""Learn when jobs come: on a schedule, or some minutes after another job.

Arrivals are noted from look to look. What the clock makes one expect is judged by whether it came true. For each job the one other
job is looked for after which it was best to have an agent ready: by what that would have saved of waiting in the times seen, less
what agents would have idled, for nothing where it did not come.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from statistics import fmean

from autoscaler.domain.facts.memory import Arrivals, Expected, Follower, Learned, TrackRecord
from autoscaler.domain.forecast.prelaunch import AgentCosts, ArrivalForecast

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
    followers: Mapping[str, Follower]
    schedules: Mapping[str, TrackRecord]


def note_arrivals(before: Learned, arrived: Iterable[Arrival], pools: Mapping[str, AgentCosts], now: float) -> Noted:
    """Note what came and what did not, and look again for what announces it."""
    in_vain = [kind for seen in before.arrivals.values() for kind in come_to_nothing(seen, now)]
    borne = note_outcome(before.schedules, in_vain, came=False)
    known = {job: _rolled_on(seen, now) for job, seen in before.arrivals.items()}
    came = []
    for arrival in arrived:
        seen = known.pop(arrival.job, Arrivals(pool=arrival.pool, times=(), count=0))
        borne = note_outcome(borne, come_true(seen, arrival.at), came=True)
        known[arrival.job] = _noted(seen, arrival, borne)  # the jobs seen last stand last
        came.append(arrival.job)
    follows = dict(before.followers)
    for job in came:
        costs = pools.get(known[job].pool)
        if costs is not None and is_time_to_look(known[job]):
            follows.pop(job, None)
            found = announcer_of(job, known, costs, now)
            if found is not None:
                follows[job] = found
    kept = dict(list(known.items())[-_JOBS_KEPT:])
    return Noted(arrivals=kept, followers={job: follower for job, follower in follows.items() if job in kept}, schedules=borne)


def _rolled_on(seen: Arrivals, now: float) -> Arrivals:
    expected = roll_on(seen, now)
    return seen if expected is seen.expected else replace(seen, expected=expected)


def _noted(seen: Arrivals, arrival: Arrival, borne: Mapping[str, TrackRecord]) -> Arrivals:
    return Arrivals(
        pool=arrival.pool,
        # A build that nobody saw wait may turn out to have come before an item that was seen.
        times=tuple(sorted((*seen.times, round(arrival.at, 1)))[-_TIMES_KEPT:]),
        count=seen.count + 1,
        expected=expect(seen, arrival.at, borne) if seen.times else (),
    )


_PERIODS_SECONDS = (3600.0, 86_400.0, 7 * 86_400.0)
_PERIODS_BACK = 4
# One is enough if the job's times go back one period only: a new nightly would wait a night longer. Two of four may be chance, one is.
_PERIODS_TO_TRUST = 2
# Jenkins starts what its cron asks for within a minute; the look that sees it may come as late.
_TOLERANCE_SECONDS = 120.0
# A job that is there so large a share of the time is not there at a certain time.
_BY_CHANCE = 0.1
# One that did not come, as on a Saturday, may come a period later: less likely each time, and not thought of below the least share.
_FADES, _LEAST_SHARE = 0.7, 0.2
# Whether guesses came true is judged by the last fifty or so of their kind.
_BORNE_FADES = 0.98


def expect(known: Arrivals, at: float, borne: Mapping[str, TrackRecord]) -> tuple[Expected, ...]:
    """What an arrival makes of what was expected of its job: this one has come, and where its like came before, the next one is due."""
    expected = [e for e in known.expected if not _is_it(e, at)]
    for period in _PERIODS_SECONDS:
        came, periods = _came(known.times, at, period)
        if periods and came >= min(periods, _PERIODS_TO_TRUST) and not any(_is_it(e, at + period) for e in expected):
            kind = f"{period:.0f} {came}/{periods}"
            expected.append(
                Expected(at=at + period, period_seconds=period, share=_share(came, periods, borne.get(kind, TrackRecord())), kind=kind)
            )
    return tuple(expected)


def come_true(known: Arrivals, at: float) -> list[str]:
    """The kinds of the guesses that an arrival bears out."""
    return [e.kind for e in known.expected if e.kind and _is_it(e, at)]


def come_to_nothing(known: Arrivals, now: float) -> list[str]:
    """The kinds of the guesses that nothing has come of."""
    return [e.kind for e in known.expected if e.kind and now > e.at + _TOLERANCE_SECONDS]


def note_outcome(borne: Mapping[str, TrackRecord], kinds: Iterable[str], *, came: bool) -> dict[str, TrackRecord]:
    """Note whether guesses came true: where jobs come by the clock most do, where people's pushes only look like it, hardly any."""
    noted = dict(borne)
    for kind in kinds:
        before = noted.get(kind, TrackRecord())
        noted[kind] = TrackRecord(true=before.true * _BORNE_FADES + came, false=before.false * _BORNE_FADES + (not came))
    return noted


def roll_on(known: Arrivals, now: float) -> tuple[Expected, ...]:
    """Put off by a period what has not come; that is no new guess."""
    if not known.expected or now <= min(e.at for e in known.expected) + _TOLERANCE_SECONDS:
        return known.expected
    return tuple(late for e in known.expected for late in _put_off(e, now))


def forecasts_by_time(known: Arrivals, now: float) -> Iterator[ArrivalForecast]:
    """When a job may come next."""
    for expected in known.expected:
        late = expected.at - now
        yield ArrivalForecast(soon=late - _TOLERANCE_SECONDS / 4, late=late, ends=late + _TOLERANCE_SECONDS, share=expected.share)


def _put_off(expected: Expected, now: float) -> Iterator[Expected]:
    if now <= expected.at + _TOLERANCE_SECONDS:
        yield expected
    elif expected.share * _FADES >= _LEAST_SHARE:
        later = expected.at + expected.period_seconds
        yield Expected(at=later, period_seconds=expected.period_seconds, share=expected.share * _FADES)


def _is_it(expected: Expected, at: float) -> bool:
    return abs(expected.at - at) <= _TOLERANCE_SECONDS


def _share(came: int, periods: int, borne: TrackRecord) -> float:
    """How likely a job is to come that came so often: by its own periods, and by what has come of other guesses like this one."""
    return (came + 1 + borne.true) / (periods + 2 + borne.true + borne.false)


def _came(times: tuple[float, ...], at: float, period: float) -> tuple[int, int]:
    """How often the job came a period ago, two periods ago, ..., and of how many that is known; never where it comes at any time."""
    if len(times) * 2 * _TOLERANCE_SECONDS > _BY_CHANCE * (at - times[0]):
        return 0, 0
    earlier = [at - back * period for back in range(1, _PERIODS_BACK + 1) if at - back * period >= times[0] - _TOLERANCE_SECONDS]
    return sum(any(abs(time - then) <= _TOLERANCE_SECONDS for time in times) for then in earlier), len(earlier)


# What follows within a minute came together, and what comes after half an hour is no follower.
_AT_LEAST_SECONDS, _AT_MOST_SECONDS = 60.0, 1800.0
# Guesses that came true less often than this did so in vain where machines are dear: of those trusted at four in ten, one in ten came.
_HITS_TO_TRUST = 5
_OCCASIONS_TO_TRUST = 3  # builds that come at once prove as much as one of them
_TRUSTED_SHARE = 0.6
# Among many jobs some one has always come before by chance: so many times more are taken to have been in vain.
_DOUBT = 2.0
# A job is looked at again after it came this often, and then each eighth time.
_LOOKED_AT = {4, 6, 8, 12}
_LOOKED_AT_EACH = 8

# When it was announced, and after how long it followed; None: it did not.
_Outcome = tuple[float, float | None]


def is_time_to_look(known: Arrivals) -> bool:
    """Tell whether a job that has just arrived has been seen often enough since its announcer was last looked for."""
    return known.count in _LOOKED_AT or known.count % _LOOKED_AT_EACH == 0


def announcer_of(job: str, arrivals: Mapping[str, Arrivals], costs: AgentCosts, now: float) -> Follower | None:
    """Find the job after which this one, which has just arrived, was best expected; None where that would not have paid."""
    found: Follower | None = None
    most_usd = 0.0
    mine = arrivals[job].times
    for name, other in arrivals.items():
        if name == job or now - other.times[-1] > _AT_MOST_SECONDS:
            continue
        if not any(_AT_LEAST_SECONDS <= now - at <= _AT_MOST_SECONDS for at in reversed(other.times)):
            continue
        outcomes = _outcomes(other.times, mine, now)
        if not _is_trusted(outcomes):
            continue
        delays = tuple(round(delay, 1) for _, delay in outcomes if delay is not None)
        usd = _worth_usd([delay for _, delay in outcomes], costs) / sum(at >= other.times[0] for at in mine)
        if usd > most_usd:
            found, most_usd = Follower(after=name, delays=delays, missed=len(outcomes) - len(delays)), usd
    return found


def forecasts_after(follower: Follower, arrivals: Mapping[str, Arrivals], mine: Arrivals, now: float) -> Iterator[ArrivalForecast]:
    """When a job may come, for each time that it was announced and has not come yet.

    The job was last judged when it came. What was announced in vain since then counts, too: else a job that stays away is believed.
    """
    other = arrivals.get(follower.after)
    if other is None or now - other.times[-1] > _AT_MOST_SECONDS:
        return
    lately = [at for at in other.times if now - at <= _AT_MOST_SECONDS]
    still_open = lately[len(_outcomes(lately, mine.times, now)) :]
    missed = max(follower.missed, _missed(_outcomes(other.times, mine.times, now)))
    missed += sum(now - at > max(follower.delays) for at in still_open)
    for at in still_open:
        follow = sorted(delay - (now - at) for delay in follower.delays if delay > now - at)
        if follow:
            share = len(follow) / (len(follow) + missed + _DOUBT)
            yield ArrivalForecast(soon=follow[len(follow) // 4], late=fmean(follow), ends=follow[-1], share=share)


def _outcomes(first: Iterable[float], then: tuple[float, ...], now: float) -> list[_Outcome]:
    """Give each announcement the arrival that follows it, each arrival once; not those still to come."""
    outcomes: list[_Outcome] = []
    place = 0
    for at in first:
        place = bisect_left(then, at + _AT_LEAST_SECONDS, place)
        if place < len(then) and then[place] <= at + _AT_MOST_SECONDS:
            outcomes.append((at, then[place] - at))
            place += 1
        elif now - at > _AT_MOST_SECONDS and at > then[0] - _AT_MOST_SECONDS:
            outcomes.append((at, None))
    return outcomes


def _is_trusted(outcomes: Collection[_Outcome]) -> bool:
    often = len(outcomes) - _missed(outcomes) >= max(_HITS_TO_TRUST, _TRUSTED_SHARE * len(outcomes))
    return often and _occasions(outcomes) >= _OCCASIONS_TO_TRUST


def _missed(outcomes: Iterable[_Outcome]) -> int:
    return sum(delay is None for _, delay in outcomes)


def _occasions(outcomes: Iterable[_Outcome]) -> int:
    """Count the moments at which something followed; what came within a minute is one."""
    times = sorted(at + delay for at, delay in outcomes if delay is not None)
    return sum(at - before >= _AT_LEAST_SECONDS for before, at in pairwise((-inf, *times)))


def _worth_usd(outcomes: list[float | None], costs: AgentCosts) -> float:
    """What it would have saved to have agents in time. Of many jobs some one always came before by chance: both halves must have paid."""
    half = len(outcomes) // 2
    return 2 * min(_saved_usd(outcomes[:half], costs), _saved_usd(outcomes[half:], costs))


def _saved_usd(outcomes: list[float | None], costs: AgentCosts) -> float:
    delays = sorted(delay for delay in outcomes if delay is not None)
    if not delays:
        return 0.0
    ready = max(delays[len(delays) // 4], costs.boot_seconds + costs.look_seconds)
    saved = sum(max(0.0, costs.boot_seconds - max(0.0, ready - delay)) for delay in delays)
    in_vain = (len(outcomes) - len(delays) + _DOUBT / 2) * (costs.boot_seconds + delays[-1] - delays[0])
    idle = sum(max(0.0, delay - ready) for delay in delays) + in_vain
    return (saved * costs.wait_usd_per_hour - idle * costs.usd_per_hour / costs.executors) / 3600.0
