"""Keeps the statistics and the costs of jobs, and answers questions about them. No pass reads them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from autoscaler.control.observe import Invocation, observe
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.job_settings import CostBatch, MonthCosts, Source
from autoscaler.domain.facts.job_stats import JobRow, Subject
from autoscaler.domain.facts.metering import DAY_SECONDS, day_name, month_name
from autoscaler.domain.facts.telemetry import Telemetry
from autoscaler.domain.learn import assess
from autoscaler.domain.lessons import Lesson
from autoscaler.domain.report import eta as report_eta
from autoscaler.domain.report import jobs as report_jobs
from autoscaler.domain.report.costs import (
    By,
    CostList,
    CostLook,
    holds_anything,
    in_day,
    in_month,
    is_due,
    is_news,
    joined,
    list_costs,
    note_look,
    opened,
    share_out,
    share_out_day,
)
from autoscaler.domain.report.eta import EtaEntry
from autoscaler.domain.report.jobs import JobList, NeedList, next_weights, note_blocks, subjects_of_blocks
from autoscaler.domain.report.ordered import jobs_of_items, known_names, meant
from autoscaler.domain.report.tracking import changes_of, follow_uses, note_changes, note_uses, subjects_of_uses
from autoscaler.domain.situation.situation import Situation
from autoscaler.errors import AutoscalerError, ConflictError, TransientError
from autoscaler.ports import CostStore, Ports

# Keeps the job statistics, and answers questions about them. No pass reads them.


_JOBS_MEANT = 10


def note_jobs(ports: Ports, situation: Situation, lessons: Mapping[str, Lesson], reports: Mapping[str, Telemetry]) -> None:
    """Note what a look taught of jobs, and what agents told of their builds. What fails teaches nothing: the metrics must go out."""
    for controller, lesson in lessons.items():
        _once(ports, partial(_note, ports, situation, controller, lesson, reports), "jobs", controller=controller)


def _once(ports: Ports, note: Callable[[], None], what: str, **facts: str) -> None:
    """Note what a look saw, unless an invocation that overlapped this one noted the same first: it would count twice."""
    try:
        note()
    except ConflictError:
        ports.log(f"{what}_noted_elsewhere", **facts)
    except AutoscalerError as error:
        ports.log(f"{what}_not_noted", **facts, error=f"{type(error).__name__}: {error}")


def _note(ports: Ports, situation: Situation, controller: str, lesson: Lesson, reports: Mapping[str, Telemetry]) -> None:
    before, after = situation.snapshot.learned[controller], lesson.learned
    # Nothing began, ended, came or left.
    is_as_before = before.running.keys() == after.running.keys() and before.waiting.keys() == after.waiting.keys()
    if is_as_before and not (reports or lesson.blocks):
        return
    tracker = ports.jobs.tracker(controller)
    changes = changes_of(tracker, situation, controller, lesson.learned)
    followed, uses = follow_uses(changes.tracker, changes.ended, situation, reports)
    changes = replace(changes, tracker=followed)
    if not changes and changes.tracker == tracker and not lesson.blocks:
        return
    subjects = changes.subjects | subjects_of_uses(uses) | subjects_of_blocks(lesson.blocks)
    known = _by_place(ports.jobs.rows(controller, subjects)) if subjects else {}
    tracker, changed = note_changes(changes, known, situation, controller, lesson.ends)
    rows = _by_place(changed)
    rows |= _by_place(note_blocks({**known, **rows}, lesson.blocks))
    rows |= _by_place(note_uses({**known, **rows}, uses, controller, situation.now))
    if situation.fleet.weights.asks(Source.LEARNED):
        tracker = replace(tracker, weights=next_weights(tracker.weights, {**known, **rows}.values(), situation.fleet))
    # The tracker first: who replaces it may count what it shows to have ended, and nobody else does.
    ports.jobs.save_tracker(controller, tracker, situation.now)
    if rows:
        ports.jobs.save_rows(tuple(rows.values()), situation.now)


def _by_place(rows: Iterable[JobRow]) -> dict[tuple[Subject, str], JobRow]:
    """Name rows by what they are about, and their pool."""
    return {(row.subject, row.pool): row for row in rows}


def learned_weights(ports: Ports, fleet: Fleet, controller: str, before: Mapping[str, int]) -> Mapping[str, int]:
    """Read what jobs were learned to weigh, where that is asked for; what was known ``before`` where it cannot be read."""
    if not fleet.weights.asks(Source.LEARNED):
        return {}
    return ports.or_else(lambda: ports.jobs.tracker(controller).weights, "weights_not_read", otherwise=before, controller=controller)


def list_needs(ports: Ports, fleet: Fleet, pattern: str, most: int) -> NeedList:
    """List what jobs that match need."""
    return report_jobs.list_needs(ports.jobs.all_rows(), fleet, pattern, most)


def list_jobs(ports: Ports, pattern: str, most: int) -> JobList:
    """List what is known of jobs that match."""
    trackers = {controller.name: ports.jobs.tracker(controller.name) for controller in ports.controllers}
    blocks = {controller: learned.blocks.counts for controller, learned in ports.state.read().learned.items() if controller in trackers}
    return report_jobs.list_jobs(ports.jobs.all_rows(), trackers, blocks, pattern, most)


def eta(ports: Ports, fleet: Fleet, invocation: Invocation, subject: str) -> list[EtaEntry]:
    """Predict when the builds of a job, or an item of the queue, will start and end; of each job that a person may mean."""
    situation = assess(observe(ports, fleet, ports.state.read(), invocation), fleet)
    if known := _eta(ports, situation, subject):
        return known
    names = {row.subject.job: () for row in ports.jobs.all_rows()} | known_names(situation)
    jobs_meant = meant(subject, names, jobs_of_items(situation))
    return [entry for job in jobs_meant[:_JOBS_MEANT] for entry in _eta(ports, situation, job)]


def _eta(ports: Ports, situation: Situation, subject: str) -> list[EtaEntry]:
    found: list[EtaEntry] = []
    for asked in report_eta.asked_on(situation, subject):
        rows = ports.jobs.rows(asked.controller, report_eta.subjects_asked(situation, asked))
        found += report_eta.eta(situation, asked, ports.jobs.tracker(asked.controller), rows)
    return found


def told_etas(ports: Ports, situation: Situation, subject: str) -> list[str]:
    """Say when builds of a job will start and end that wait or run; nothing where the statistics cannot be read."""
    with suppress(AutoscalerError):
        return report_eta.told_together([entry for entry in _eta(ports, situation, subject) if entry.state != "not queued"])
    return []


# Keeps what jobs cost, and answers questions about it. No pass reads it.


_READS = 3


def note_costs(ports: Ports, situation: Situation, lessons: Mapping[str, Lesson]) -> None:
    """Note what a look saw agents used for. What fails is made good by the next look: the metrics must go out."""
    learned = {controller: lesson.learned for controller, lesson in lessons.items()}
    _once(ports, partial(_note_costs, ports.costs, CostLook(snapshot=situation.snapshot, fleet=situation.fleet, learned=learned)), "costs")


def _note_costs(store: CostStore, look: CostLook) -> None:
    batch, now = store.batch(), look.snapshot.taken_at
    if not is_news(batch, look):
        return
    new = opened(look.metered, now, batch.version)
    if batch.month != look.metered.name:
        ended = _booked(store, batch, batch.seen_at) if batch.month and holds_anything(batch) else []
        store.book([*ended, share_out(store.month(new.month), new)], new, now)
        return
    after = note_look(batch, look)
    # What is open at midnight is added to the day in which it was used.
    is_of_yesterday = day_name(batch.seen_at) != day_name(now) and holds_anything(after)
    if is_due(after) or is_of_yesterday:
        store.book(_booked(store, after, batch.seen_at), new, now)
    elif (after.used, after.unused, after.spent) != (batch.used, batch.unused, batch.spent):
        store.book([], after, now)


def _booked(store: CostStore, batch: CostBatch, at: float) -> list[MonthCosts]:
    """Add a batch to its month, and to the day of this moment."""
    return [share_out(store.month(batch.month), batch), share_out_day(store.month(day_name(at)), batch)]


def list_days(ports: Ports, fleet: Fleet, days: int | str, by: By) -> CostList:
    """List the costs of the last days (UTC), today included; or of "yesterday", or of a date alone.

    A day on which nothing was used has none, nor one before days were kept.
    """
    metered, now = ports.state.read().memory.month, ports.clock()
    names = [days] if isinstance(days, str) else [day_name(now - ago * DAY_SECONDS) for ago in reversed(range(days))]
    batch, costs = _read(ports, [day_name(now - DAY_SECONDS)] if days == "yesterday" else names)
    kept = [in_day(day, batch, metered) for day in costs]
    return replace(list_costs(joined(kept), fleet, by), days=len(kept), days_with_costs=sum(bool(day.version) for day in kept))


def list_month(ports: Ports, fleet: Fleet, month: str | None, by: By) -> CostList:
    """List the costs of a month, of the present one where none is named."""
    batch, [costs] = _read(ports, [month or month_name(ports.clock())])
    counted = in_month(costs, batch, ports.state.read().memory.month)
    return replace(list_costs(counted, fleet, by), volumes_usd=counted.parts.disk_usd)


def _read(ports: Ports, names: Sequence[str]) -> tuple[CostBatch, list[MonthCosts]]:
    """Read costs of days or months as they were at one instant, with the batch: in between, it may be added to them."""
    for _ in range(_READS):
        batch = ports.costs.batch()
        costs = ports.side_by_side([partial(ports.costs.month, name) for name in names])
        if ports.costs.batch().version == batch.version:
            return batch, costs
    raise TransientError("the costs were written while they were read; ask again")
