"""How long builds take, boots are delayed and waits last, by what was seen; with ranges, for people."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, exp, exp2, floor, inf, log

from autoscaler.domain.facts.job_stats import Estimate, JobRow, JobTracker, Skill, Spread, Subject, WaitingItem
from autoscaler.domain.facts.memory import CapacityDelay, Learned, TrackRecord
from autoscaler.domain.forecast.job_patterns import project_of

# How long builds take, learned from builds on executors, and when an executor will be free.


# Beyond p80 a build is overdue; beyond three times p80 it is taken to hold its executor for good.
NEVER_FREE_FACTOR = 3.0
# Before a pool has seen one build end: ten minutes, the middle of the CI jobs we have traces of.
ASSUMED_DURATION_SECONDS = 600.0
_LEAST_SECONDS = 1.0
_PER_JOB, _PER_POOL = 20, 200


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Median and eightieth percentile, seconds."""

    p50_seconds: float
    p80_seconds: float


_ASSUMED_QUANTILES = Quantiles(ASSUMED_DURATION_SECONDS, ASSUMED_DURATION_SECONDS)


def quantiles_of(learned: Learned, job: str, pool: str) -> Quantiles:
    """Return the best estimate: of this job in this pool, else of the pool, else the assumed one."""
    return quantiles_of_job(learned, job, pool) or (quantiles_of_job(learned, "", pool) if job else None) or _ASSUMED_QUANTILES


def quantiles_of_job(learned: Learned, job: str, pool: str) -> Quantiles | None:
    """Return the durations seen of this job in this pool; None before a build of it ended there."""
    samples = learned.samples.get(job_key(job, pool))
    return quantiles(samples) if samples else None


def note_duration(samples: dict[str, tuple[float, ...]], job: str, pool: str, seconds: float) -> None:
    """Note how long a build took, for its job in that pool and for the pool."""
    for key, kept in ((job_key(job, pool), _PER_JOB), (job_key("", pool), _PER_POOL)):
        # Popped and put back: the jobs seen last stand last, and are kept.
        samples[key] = (*samples.pop(key, ()), round(seconds, 1))[-kept:]


def job_key(job: str, pool: str) -> str:
    """Name the key of a job's durations; of the job without a name: of all of the pool's."""
    return f"{pool}\n{job}"


@lru_cache(maxsize=10_000)
def quantiles(samples: tuple[float, ...]) -> Quantiles:
    """Nearest-rank p50 and p80 of at least one sample."""
    ordered = sorted(samples)
    return Quantiles(*(ordered[max(0, ceil(share * len(ordered)) - 1)] for share in (0.5, 0.8)))


def remaining_seconds(elapsed_seconds: float, job_p80_seconds: float | None, pool_p80_seconds: Callable[[], float]) -> float:
    """Estimate the remaining time of a build; `inf`: do not count on its end.

    Unknown jobs and those beyond their p80 are given as much again as they have run, at least the pool's p80.
    A build that runs takes a second more at least: its executor is not free.
    """
    if job_p80_seconds is not None:
        if elapsed_seconds > NEVER_FREE_FACTOR * job_p80_seconds:
            return inf
        if elapsed_seconds <= job_p80_seconds:
            return max(job_p80_seconds - elapsed_seconds, _LEAST_SECONDS)
    return max(elapsed_seconds, pool_p80_seconds())


# Distributions that forget: a value weighs half as much after thirty more, and after thirty days.


# Three per cent from one step to the next: finer than any two builds are alike.
STEP = 0.03
STEPS_KEPT = 48
HALF_LIFE_VALUES, HALF_LIFE_SECONDS = 30.0, 30 * 86_400.0
_LEAST = 1e-3  # of ratios and of seconds


def fading(seconds: float) -> float:
    """Return what is left of a weight after one more value, so many seconds later."""
    return exp2(-1.0 / HALF_LIFE_VALUES - max(0.0, seconds) / HALF_LIFE_SECONDS)


def note_value(spread: Spread, value: float, at: float, steps_kept: int = STEPS_KEPT) -> Spread:
    """Add a value; where there are too many steps the lightest is dropped, which is mostly the oldest."""
    left = fading(at - spread.at if spread.count else 0.0)
    weights = {step: round(weight * left, 4) for step, weight in spread.weights.items()}
    step = floor(log(max(value, _LEAST)) / STEP)
    weights[step] = weights.get(step, 0.0) + 1.0
    if len(weights) > steps_kept:
        del weights[min(weights, key=lambda one: (weights[one], one))]
    return Spread(weights=weights, squares=round(spread.squares * left * left + 1.0, 4), count=spread.count + 1, at=at)


def quantile(spread: Spread, share: float) -> float:
    """Return a quantile of at least one value, interpolated inside its step."""
    steps = sorted(spread.weights)
    left = share * sum(spread.weights.values())
    for step in steps:
        weight = spread.weights[step]
        if weight >= left > 0.0 or (weight > 0.0 and left <= 0.0):
            return exp(STEP * (step + max(0.0, left) / weight))
        left -= weight
    return exp(STEP * (steps[-1] + 1))


# Ranges for durations and starts, from what was seen and from how past predictions did.
#
# Of enough values the range is taken from their own quantiles, a little wider than the tenth and the ninetieth: of few values these are
# too narrow. Of fewer it is the median, times what builds of other jobs made of such medians.


TAIL = 0.1  # on either side of the range: it is to hold for four in five
_ENOUGH = 9  # of fewer values no two enclose four fifths of what comes
_ASSUMED = Estimate(low=0.5, mid=1.0, high=2.0)
# A prediction of a few seconds that is off by a few is not twice wrong.
SLACK_SECONDS = 30.0
_NO_RECORD_ERROR, _FEW_VALUES_ERROR = 0.5, 0.3
_WORTH_CORRECTING = 0.8
_SIBLINGS = "/*"
_BARE, _CORRECTED = "start as planned", "start as it came"


def subjects_of(job: str, run: str, signature: str) -> tuple[Subject, ...]:
    """Whose builds tell how long this one takes, the nearest first; of a pipeline also its project, where branches are jobs."""
    jobs = [job]
    if run and (project := project_of(job)) != job:
        jobs.append(project + _SIBLINGS)
    told = [Subject(name, signature) for name in jobs] if signature else []
    return (*told, *(Subject(name) for name in jobs))


def is_of_project(subject: Subject) -> bool:
    """Tell whether a subject is all jobs of a folder, which may be branches of one project."""
    return subject.job.endswith(_SIBLINGS)


def kind_of(subject: Subject) -> str:
    """Name the kind of a subject: by these it is known which of them predicts better."""
    return ("project" if is_of_project(subject) else "job") + (" with signature" if subject.signature else "")


def best_row(rows: Iterable[JobRow], skills: Mapping[str, Skill]) -> JobRow | None:
    """Choose the row that predicts best, by how its kind did lately and by how much it has seen; None where nothing was seen."""
    seen = [row for row in rows if row.durations.count]
    return min(seen, key=lambda row: _expected_error(row, skills), default=None)


def _expected_error(row: JobRow, skills: Mapping[str, Skill]) -> float:
    skill = skills.get(kind_of(row.subject), Skill())
    return (skill.error + _NO_RECORD_ERROR) / (skill.weight + 1.0) + _FEW_VALUES_ERROR / row.durations.count


def duration_of(row: JobRow | None, tracker: JobTracker) -> Estimate | None:
    """Estimate how long a build takes; None where none of its like was seen."""
    if row is None or not row.durations.count:
        return None
    mid = quantile(row.durations, 0.5)
    if own := _range_of(row.durations):
        return replace(own, mid=mid)
    ratios = _range_of(tracker.ratios.get(_few(row.durations), Spread())) or _ASSUMED
    return Estimate(low=mid * ratios.low, mid=mid, high=mid * ratios.high)


def _few(spread: Spread) -> str:
    return f"{spread.count} seen"


def _range_of(spread: Spread) -> Estimate | None:
    """Take the range of a distribution, as wide as so many values need; None of too few."""
    # How many values of equal weight the weights are worth.
    values = sum(spread.weights.values()) ** 2 / spread.squares if spread.squares > 0.0 else 0.0
    if spread.count < _ENOUGH or values < _ENOUGH:
        return None
    tail = (TAIL * (values + 1.0) - 0.5) / values
    return Estimate(low=quantile(spread, tail), mid=quantile(spread, 0.5), high=quantile(spread, 1.0 - tail))


def left_of(duration: Estimate, elapsed: float) -> Estimate | None:
    """Estimate how much longer a build runs that has run so long; None if it runs longer than nine in ten: nobody can tell."""
    if elapsed > duration.high:
        return None
    passed = _share_below(duration, elapsed)
    low, mid, high = (_quantile_of(duration, passed + (1.0 - passed) * share) - elapsed for share in (TAIL, 0.5, 1.0 - TAIL))
    return Estimate(low=max(0.0, low), mid=max(0.0, mid), high=max(0.0, high))


def _share_below(duration: Estimate, seconds: float) -> float:
    """Return which share of such builds takes less, on a line through the three points; up to the lowest: none."""
    if seconds <= duration.low:
        return 0.0
    if seconds <= duration.mid:
        return TAIL + (0.5 - TAIL) * log(seconds / duration.low) / max(log(duration.mid / duration.low), 1e-9)
    return 0.5 + (0.5 - TAIL) * log(seconds / duration.mid) / max(log(duration.high / duration.mid), 1e-9)


def _quantile_of(duration: Estimate, share: float) -> float:
    if share <= 0.5:
        return duration.low * exp(log(duration.mid / duration.low) * (share - TAIL) / (0.5 - TAIL))
    return duration.mid * exp(log(duration.high / duration.mid) * (share - 0.5) / (0.5 - TAIL))


def start_kinds(waits_for: str, server: str, *, mature: bool) -> tuple[str, ...]:
    """Name the kinds of a predicted start, the closest first: those alike are corrected by what came of each other."""
    general = f"{waits_for}, {'mature' if mature else 'young'}"
    return f"{general}, {server}", general


def start_of(bare_seconds: float, kinds: Sequence[str], tracker: JobTracker) -> tuple[Estimate, float]:
    """Estimate a start from a bare prediction, and from what came of others of the closest kind of which enough were seen.

    The range is theirs. The middle is corrected only where that has come closer lately; the corrected one is returned, too.
    """
    known = (found for kind in kinds if (found := _range_of(tracker.ratios.get(kind, Spread()))))
    ratios = next(known, _ASSUMED)
    low, mid, high = (max(0.0, (bare_seconds + SLACK_SECONDS) * ratio - SLACK_SECONDS) for ratio in (ratios.low, ratios.mid, ratios.high))
    bare, corrected = (tracker.skills.get(f"{way}: {kinds[-1]}", Skill()) for way in (_BARE, _CORRECTED))
    middle = mid if corrected.error < _WORTH_CORRECTING * bare.error else bare_seconds
    return Estimate(low=min(low, middle), mid=middle, high=max(high, middle)), mid


def sum_of(first: Estimate, then: Estimate) -> Estimate:
    """Add two estimates that do not depend on each other: their medians, and the root of the squares of their spreads."""
    mid = first.mid + then.mid
    below = ((first.mid - first.low) ** 2 + (then.mid - then.low) ** 2) ** 0.5
    above = ((first.high - first.mid) ** 2 + (then.high - then.mid) ** 2) ** 0.5
    return Estimate(low=max(0.0, mid - below), mid=mid, high=mid + above)


def note_start(tracker: JobTracker, item: WaitingItem, seconds: float, at: float) -> JobTracker:
    """Note what came of a predicted start."""
    came, bare, corrected = (max(0.0, one) + SLACK_SECONDS for one in (seconds, item.bare_seconds, item.corrected_seconds))
    for kind in item.kinds:
        tracker = _with_ratio(tracker, kind, came / bare, at)
    skills = dict(tracker.skills)
    for way, said in ((_BARE, bare), (_CORRECTED, corrected)):
        name = f"{way}: {item.kinds[-1]}"
        skills[name] = next_skill(skills.get(name, Skill()), came / said)
    return replace(tracker, skills=skills)


def note_end(tracker: JobTracker, row: JobRow, seconds: float, at: float) -> JobTracker:
    """Note how far off the median of a row was, which has not seen this build yet."""
    if not row.durations.count:
        return tracker
    ratio = seconds / quantile(row.durations, 0.5)
    kind = kind_of(row.subject)
    if row.durations.count < _ENOUGH:
        tracker = _with_ratio(tracker, _few(row.durations), ratio, at)
    return replace(tracker, skills={**tracker.skills, kind: next_skill(tracker.skills.get(kind, Skill()), ratio)})


def next_skill(skill: Skill, ratio: float) -> Skill:
    """Note one more ratio of what came to what was predicted."""
    left = fading(0.0)
    return Skill(error=round(skill.error * left + abs(log(ratio)), 4), weight=round(skill.weight * left + 1.0, 4))


def next_record(record: TrackRecord, came: bool | None) -> TrackRecord:  # noqa: FBT001 - one of two outcomes, or none
    """Note one more outcome; None: it is not known."""
    if came is None:
        return record
    left = fading(0.0)
    return TrackRecord(true=round(record.true * left + came, 4), false=round(record.false * left + (not came), 4))


def _with_ratio(tracker: JobTracker, kind: str, ratio: float, at: float) -> JobTracker:
    return replace(tracker, ratios={**tracker.ratios, kind: note_value(tracker.ratios.get(kind, Spread()), ratio, at)})


# Expected delay beyond a boot because EC2 lacks machines of a pool, learned from past launches.
#
# The mean is learned, not the median: the rare hour without any capacity costs, not the usual launch that gets what it asks for.


# What was refused and is still wanted is asked for again within this time; launches within it are of one burst, and tell nothing new.
_ONE_ASK_SECONDS = 600.0
# Each ask makes those before it count a little less: the last hundred or so decide.
_FADES = 0.99
# Before anything was asked, so many asks are believed to have been answered at once.
_BELIEVED_ASKS = 2.0
# While machines are short some bursts go on growing, others were over at once: of the jobs that steady demand would bring meanwhile so many
# are believed to come. By trial on traces: a half kept too much where machines are short for ten minutes, none too little for an hour.
_GOES_ON_SHARE = 0.25


def note_refused(known: CapacityDelay | None, now: float) -> CapacityDelay:
    """Note that a launch of a pool was refused for want of capacity."""
    known = known or CapacityDelay()
    if known.since_at is not None and now - known.asked_at > _ONE_ASK_SECONDS:
        known = _asked(known, now)
    return replace(known, asked_at=now, since_at=now if known.since_at is None else known.since_at)


def note_had(known: CapacityDelay | None, now: float) -> CapacityDelay:
    """Note that an agent was launched."""
    known = known or CapacityDelay()
    if known.since_at is None and now - known.asked_at <= _ONE_ASK_SECONDS:
        return known
    return replace(_asked(known, now), asked_at=now)


def expected_seconds(known: CapacityDelay | None, now: float, boot_seconds: float) -> float:
    """Return the expected wait beyond a boot of a job that finds no agent.

    Those that come later, while machines are still short, wait as well: they count as if these waited for them.
    """
    if known is None:
        return 0.0
    if known.since_at is not None:
        known = _asked(known, now)
    return (known.seconds + _GOES_ON_SHARE * known.squares / max(boot_seconds, 1.0)) / (known.asks + _BELIEVED_ASKS)


def _asked(known: CapacityDelay, now: float) -> CapacityDelay:
    """Count one more request, that waited as long as the shortage lasted; if nobody asks any more, until it was last confirmed."""
    until_at = now if now - known.asked_at <= _ONE_ASK_SECONDS else known.asked_at
    seconds = 0.0 if known.since_at is None else until_at - known.since_at
    return replace(
        known,
        asks=known.asks * _FADES + 1.0,
        seconds=known.seconds * _FADES + seconds,
        squares=known.squares * _FADES + seconds**2,
        since_at=None,
    )
