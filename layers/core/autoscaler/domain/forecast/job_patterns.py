"""When jobs come: on a schedule, some minutes after another job, or as the next stage of a pipeline."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from statistics import fmean, median

from autoscaler.domain.facts.memory import Arrivals, Expected, Follower, Learned, RunSeen, StageSeen, TrackRecord
from autoscaler.domain.facts.runs import job_name_of
from autoscaler.domain.facts.snapshot import LOOK_GAP_SECONDS
from autoscaler.domain.grouping import grouped

# Tell whether an agent is worth launching for a job that may come.


# So long before its boot must begin an agent is launched for what is to come, however often one looks: boots are uneven, and one that
# comes late costs a wait. What that is worth: docs/experiments.md.
LEAD_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCosts:
    """What an agent of a pool costs and what it spares, as forecasts reckon with it; ``vain_seconds``: paid for one that nobody takes."""

    executors: int
    boot_seconds: float
    vain_seconds: float
    usd_per_hour: float
    wait_usd_per_hour: float  # of one job
    look_seconds: float  # from one look to the next


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalForecast:
    """Seconds from now: when it may come (a quarter came sooner), when it comes on average, and when one knows that it does not."""

    soon: float
    late: float
    ends: float
    share: float  # how often it comes


def is_worth_keeping(arrival: ArrivalForecast, costs: AgentCosts, jobs: int) -> bool:
    """Tell whether it is time, and an agent that is there spares these jobs more of waiting for a boot than its idling costs."""
    if arrival.soon > costs.boot_seconds + LEAD_SECONDS:
        return False
    idle = arrival.share * max(0.0, arrival.late - costs.boot_seconds) + (1 - arrival.share) * (arrival.ends + costs.look_seconds)
    return _spared_usd(arrival, costs, jobs, costs.boot_seconds) > costs.usd_per_hour * idle / 3600.0


def is_worth_launching(arrival: ArrivalForecast, costs: AgentCosts, jobs: int) -> bool:
    """Tell the same of one that is launched now: it spares no more than the time until they come, and is paid for until it has booted."""
    if not is_worth_keeping(arrival, costs, jobs):
        return False
    idle = arrival.share * max(0.0, arrival.late - costs.boot_seconds)
    in_vain = (1 - arrival.share) * (max(arrival.ends, costs.boot_seconds) + costs.look_seconds)
    spared_seconds = min(costs.boot_seconds, max(0.0, arrival.late))
    return _spared_usd(arrival, costs, jobs, spared_seconds) > costs.usd_per_hour * (idle + in_vain) / 3600.0


def _spared_usd(arrival: ArrivalForecast, costs: AgentCosts, jobs: int, seconds: float) -> float:
    """What so many seconds of waiting are worth, and half a look until the jobs would have been seen."""
    return arrival.share * costs.wait_usd_per_hour * (seconds + costs.look_seconds / 2) * min(jobs, costs.executors) / 3600.0


# Learn when jobs come: on a schedule, or some minutes after another job.
#
# Arrivals are noted from look to look. What the clock makes one expect is judged by whether it came true. For each job the one other
# job is looked for after which it was best to have an agent ready: by what that would have saved of waiting in the times seen, less
# what agents would have idled, for nothing where it did not come.


_TIMES_KEPT = 20
_JOBS_KEPT = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A job that was asked for since the last look."""

    job: str
    pool: str
    at: float


def note_arrivals(
    before: Learned, arrived: Iterable[Arrival], pools: Mapping[str, AgentCosts], now: float
) -> tuple[dict[str, Arrivals], dict[str, Follower], dict[str, TrackRecord]]:
    """Note what came and what did not, look again for what announces it, and note what has come of guesses by the clock."""
    in_vain = [e.kind for seen in before.arrivals.values() for e in seen.expected if e.kind and now > e.at + _TOLERANCE_SECONDS]
    borne = note_outcome(before.schedules, in_vain, came=False)
    known = {job: _rolled_on(seen, now) for job, seen in before.arrivals.items()}
    came = []
    for arrival in arrived:
        seen = known.pop(arrival.job, Arrivals(pool=arrival.pool, times=(), count=0))
        borne = note_outcome(borne, _come_true(seen, arrival.at), came=True)
        # A build that nobody saw wait may turn out to have come before an item that was seen. The jobs seen last stand last.
        times = tuple(sorted((*seen.times, round(arrival.at, 1)))[-_TIMES_KEPT:])
        expected = expect(seen, arrival.at, borne) if seen.times else ()
        known[arrival.job] = Arrivals(pool=arrival.pool, times=times, count=seen.count + 1, expected=expected)
        came.append(arrival.job)
    follows = dict(before.followers)
    for job in came:
        costs = pools.get(known[job].pool)
        if costs is not None and (known[job].count in _LOOKED_AT or known[job].count % _LOOKED_AT_EACH == 0):
            follows.pop(job, None)
            if found := announcer_of(job, known, costs, now):
                follows[job] = found
    kept = dict(list(known.items())[-_JOBS_KEPT:])
    return kept, {job: follower for job, follower in follows.items() if job in kept}, borne


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


def _come_true(known: Arrivals, at: float) -> list[str]:
    """The kinds of the guesses that an arrival bears out."""
    return [e.kind for e in known.expected if e.kind and _is_it(e, at)]


def note_outcome(borne: Mapping[str, TrackRecord], kinds: Iterable[str], *, came: bool) -> dict[str, TrackRecord]:
    """Note whether guesses came true: where jobs come by the clock most do, where people's pushes only look like it, hardly any."""
    noted = dict(borne)
    for kind in kinds:
        before = noted.get(kind, TrackRecord())
        noted[kind] = TrackRecord(true=before.true * _BORNE_FADES + came, false=before.false * _BORNE_FADES + (not came))
    return noted


def _rolled_on(seen: Arrivals, now: float) -> Arrivals:
    """Put off by a period what has not come; that is no new guess."""
    if not seen.expected or now <= min(e.at for e in seen.expected) + _TOLERANCE_SECONDS:
        return seen
    return replace(seen, expected=tuple(late for e in seen.expected for late in _put_off(e, now)))


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
        often = len(outcomes) - _missed(outcomes) >= max(_HITS_TO_TRUST, _TRUSTED_SHARE * len(outcomes))
        times = sorted(at + delay for at, delay in outcomes if delay is not None)
        # Moments at which something followed; what came within a minute is one.
        if not often or sum(at - before >= _AT_LEAST_SECONDS for before, at in pairwise((-inf, *times))) < _OCCASIONS_TO_TRUST:
            continue
        delays = tuple(round(delay, 1) for _, delay in outcomes if delay is not None)
        half = len(outcomes) // 2
        # Of many jobs some one always came before by chance: both halves must have paid.
        usd = 2 * min(_saved_usd(outcomes[:half], costs), _saved_usd(outcomes[half:], costs)) / sum(at >= other.times[0] for at in mine)
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


def _missed(outcomes: Iterable[_Outcome]) -> int:
    return sum(delay is None for _, delay in outcomes)


def _saved_usd(outcomes: list[_Outcome], costs: AgentCosts) -> float:
    """What it would have saved to have agents in time."""
    delays = sorted(delay for _, delay in outcomes if delay is not None)
    ready = max(delays[len(delays) // 4], costs.boot_seconds + costs.look_seconds)
    saved = sum(max(0.0, costs.boot_seconds - max(0.0, ready - delay)) for delay in delays)
    in_vain = (len(outcomes) - len(delays) + _DOUBT / 2) * (costs.boot_seconds + delays[-1] - delays[0])
    idle = sum(max(0.0, delay - ready) for delay in delays) + in_vain
    return (saved * costs.wait_usd_per_hour - idle * costs.usd_per_hour / costs.executors) / 3600.0


# Stages of pipelines: a run in one stage announces the next one, as its project's earlier runs have shown.
#
# A stage is what a run has in the queue and on executors at once; when most of what it has is new, that is its next stage. Of every
# project and stage it is learned how long it takes, what comes then, in which pools, and how often nothing does.


Worth = Callable[[ArrivalForecast, AgentCosts, int], bool]  # whether it is time, and an agent pays, for so many jobs
_STAGES_TO_TRUST = 3
_STAGES_AHEAD = 2
_SAMPLES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """The present items and builds of one run, by id and key, each with its pool."""

    job: str
    items: Mapping[int, str]
    builds: Mapping[str, str]


def learn_stages(before: Learned, present: Mapping[str, Present], now: float) -> tuple[dict[str, RunSeen], dict[str, StageSeen]]:
    """Follow every run for one look; return the runs as they are now, and the updated stages."""
    runs: dict[str, RunSeen] = {}
    stages = dict(before.stages)
    for run, has in present.items():
        known = before.runs.get(run)
        if known is None:
            runs[run] = _begin(has, project_of(has.job), now)
        elif has.builds == known.builds and has.items.keys() == set(known.items):
            runs[run] = known if known.left_at is None else replace(known, left_at=None)
        elif came := _next_stage(known, has):
            _note(stages, known, now, came)
            runs[run] = _begin(has, known.project, now)
        else:
            runs[run] = replace(known, items=tuple(has.items), builds=dict(has.builds), left_at=None)
    for run, known in before.runs.items():
        if run not in present:
            left_at = before.seen_at if known.left_at is None else known.left_at
            if now - left_at <= LOOK_GAP_SECONDS:
                runs[run] = replace(known, left_at=left_at)  # between two stages, perhaps
            else:
                _note(stages, known, left_at, Counter())
    return runs, stages


def project_of(job: str) -> str:
    """Name the project of a job: the folder of a branch or pull request, else the job itself."""
    return job.rpartition("/")[0] or job


def due(
    learned: Learned, pools: Mapping[str, AgentCosts], now: float, is_worth: Worth, declined: Collection[tuple[str, str]] = ()
) -> Counter[str]:
    """Count the executors worth having now for coming stages, by pool: another look later would be too late.

    ``declined``: jobs that are no demand for a pool, with the pool.
    """
    counts: Counter[str] = Counter()
    for path, run in learned.runs.items():
        executors: dict[str, int] = {}  # for its next stage, and the one after it where that comes as soon
        stage, elapsed, ahead, share = run.stage, now - run.since_at, 0.0, 1.0
        for _ in range(_STAGES_AHEAD):
            history = learned.stages.get(_key(run.project, stage))
            next_one = _next_of(history, elapsed) if history else None
            if next_one is None:
                break
            arrival, come = next_one
            arrival = replace(arrival, soon=ahead + arrival.soon, late=ahead + arrival.late, share=share * arrival.share)
            for name, count in come.items():
                if name in pools and is_worth(arrival, pools[name], count):
                    executors[name] = max(executors.get(name, 0), count)
            stage, elapsed, ahead, share = stage_name(come), 0.0, arrival.soon, arrival.share
        own = Counter(run.builds.values() if executors else ())  # these will have ended by then
        for name, count in executors.items():
            if not (declined and (job_name_of(path), name) in declined):
                counts[name] += max(0, count - own[name])
    return counts


def _next_of(history: StageSeen, elapsed: float) -> tuple[ArrivalForecast, Counter[str]] | None:
    """Return when the next stage comes by a stage's history, and its executors by pool."""
    follow = [(seconds - elapsed, counts) for seconds, counts in history.followed if seconds > elapsed]
    end = [seconds - elapsed for seconds in history.ended if seconds > elapsed]
    if len(follow) < _STAGES_TO_TRUST:
        return None
    ahead = sorted(seconds for seconds, _ in follow)
    names = sorted({name for _, counts in follow for name in counts})
    counts = Counter({name: int(median(counts.get(name, 0) for _, counts in follow)) for name in names})
    arrival = ArrivalForecast(
        soon=ahead[len(ahead) // 4],
        late=fmean(ahead),
        ends=fmean(end) if end else 0.0,
        share=len(follow) / (len(follow) + len(end)),
    )
    return arrival, +counts


def stage_name(counts: Mapping[str, int]) -> str:
    """Name a stage by roughly how much it has in which pools: counting stages fails when a look misses one."""
    return " ".join(f"{pool}*{2 ** count.bit_length() // 2}" for pool, count in sorted(counts.items()))


def _begin(has: Present, project: str, now: float) -> RunSeen:
    stage = stage_name(Counter((*has.items.values(), *has.builds.values())))
    return RunSeen(project=project, stage=stage, since_at=now, items=tuple(has.items), builds=dict(has.builds))


def _next_stage(known: RunSeen, has: Present) -> Counter[str]:
    """Return all that the run has, by pool, if most of it has come since the last look: its next stage.

    Jenkins names a stage's build by its run and its executor, so what the next stage runs on the same executor looks like what is left.
    """
    fresh_items = sum(item not in known.items for item in has.items)
    fresh_builds = sum(build not in known.builds for build in has.builds)
    begun = min(fresh_builds, sum(item not in has.items for item in known.items))  # an item that is gone may be a build that is new
    left = len(has.items) + len(has.builds) - fresh_items - fresh_builds + begun
    return Counter((*has.items.values(), *has.builds.values())) if fresh_items + fresh_builds - begun > left else Counter()


def _note(stages: dict[str, StageSeen], run: RunSeen, now: float, came: Mapping[str, int]) -> None:
    key, seconds = _key(run.project, run.stage), round(now - run.since_at, 1)
    known = stages.pop(key, StageSeen())
    if came:
        known = replace(known, followed=(*known.followed, (seconds, dict(came)))[-_SAMPLES:])
    else:
        known = replace(known, ended=(*known.ended, seconds)[-_SAMPLES:])
    stages[key] = known


def _key(project: str, stage: str) -> str:
    return f"{project}\n{stage}"


def presents(items: Iterable[tuple[str, str, int, str]], builds: Iterable[tuple[str, str, str, str]]) -> dict[str, Present]:
    """Gather by run. ``items``: (run, job, id, pool); ``builds``: (run, job, key, pool)."""
    items, builds = list(items), list(builds)
    jobs = {run: job for run, job, *_ in (*items, *builds)}
    of_items = grouped((run, (item, pool)) for run, _, item, pool in items)
    of_builds = grouped((run, (build, pool)) for run, _, build, pool in builds)
    return {run: Present(job=job, items=dict(of_items.get(run, ())), builds=dict(of_builds.get(run, ()))) for run, job in jobs.items()}
