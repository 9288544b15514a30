"""Ranges for durations and starts, from what was seen and from how past predictions did.

Of enough values the range is taken from their own quantiles, a little wider than the tenth and the ninetieth: of few values these are
too narrow. Of fewer it is the median, times what builds of other jobs made of such medians.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import exp, log

from autoscaler.domain.facts.job_stats import Estimate, JobRow, JobTracker, Skill, Spread, Subject, WaitingItem
from autoscaler.domain.facts.memory import TrackRecord
from autoscaler.domain.forecast.spread import fading, note_value, quantile, worth
from autoscaler.domain.forecast.stages import project_of

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
    values = worth(spread)
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
