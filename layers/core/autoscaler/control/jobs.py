"""Keeps the job statistics, and answers questions about them. No pass reads them."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from autoscaler.control.invocation import Invocation
from autoscaler.control.observe import observe
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.job_settings import Source
from autoscaler.domain.facts.job_stats import JobRow, Subject
from autoscaler.domain.facts.memory import Learned
from autoscaler.domain.facts.telemetry import Telemetry
from autoscaler.domain.learn import assess
from autoscaler.domain.lessons import Lesson
from autoscaler.domain.report import eta as report_eta
from autoscaler.domain.report import jobs as report_jobs
from autoscaler.domain.report import jobs as report_needs
from autoscaler.domain.report.eta import EtaEntry
from autoscaler.domain.report.jobs import JobList, NeedList, next_weights, note_blocks, subjects_of_blocks
from autoscaler.domain.report.ordered import jobs_of_items, known_names, meant
from autoscaler.domain.report.tracking import changes_of, follow_uses, note_changes, note_uses
from autoscaler.domain.situation.situation import Situation
from autoscaler.errors import AutoscalerError, ConflictError
from autoscaler.ports import Ports

_JOBS_MEANT = 10


def note_jobs(ports: Ports, situation: Situation, lessons: Mapping[str, Lesson], reports: Mapping[str, Telemetry]) -> None:
    """Note what a look taught of jobs, and what agents told of their builds. What fails teaches nothing: the metrics must go out."""
    for controller, lesson in lessons.items():
        try:
            _note(ports, situation, controller, lesson, reports)
        except ConflictError:
            # An invocation that overlapped this one noted the same look first: it would count twice.
            ports.log("jobs_noted_elsewhere", controller=controller)
        except AutoscalerError as error:
            ports.log("jobs_not_noted", controller=controller, error=f"{type(error).__name__}: {error}")


def _note(ports: Ports, situation: Situation, controller: str, lesson: Lesson, reports: Mapping[str, Telemetry]) -> None:
    if _is_as_before(situation.snapshot.learned[controller], lesson.learned) and not (reports or lesson.blocks):
        return
    tracker = ports.jobs.tracker(controller)
    changes = changes_of(tracker, situation, controller, lesson.learned)
    uses = follow_uses(changes.tracker, changes.ended, situation, reports)
    changes = replace(changes, tracker=uses.tracker)
    if not changes and changes.tracker == tracker and not lesson.blocks:
        return
    subjects = changes.subjects | uses.subjects | subjects_of_blocks(lesson.blocks)
    known = _by_place(ports.jobs.rows(controller, subjects)) if subjects else {}
    noted = note_changes(changes, known, situation, controller, lesson.ends)
    rows = _by_place(noted.rows)
    rows |= _by_place(note_blocks({**known, **rows}, lesson.blocks))
    rows |= _by_place(note_uses({**known, **rows}, uses.told, controller, situation.now))
    tracker = noted.tracker
    if situation.fleet.weights.asks(Source.LEARNED):
        tracker = replace(tracker, weights=next_weights(tracker.weights, {**known, **rows}.values(), situation.fleet))
    # The tracker first: who replaces it may count what it shows to have ended, and nobody else does.
    ports.jobs.save_tracker(controller, tracker, situation.now)
    if rows:
        ports.jobs.save_rows(tuple(rows.values()), situation.now)


def _by_place(rows: Iterable[JobRow]) -> dict[tuple[Subject, str], JobRow]:
    """Name rows by what they are about, and their pool."""
    return {(row.subject, row.pool): row for row in rows}


def _is_as_before(before: Learned, after: Learned) -> bool:
    """Tell whether nothing began, ended, came or left."""
    return before.running.keys() == after.running.keys() and before.waiting.keys() == after.waiting.keys()


def learned_weights(ports: Ports, fleet: Fleet, controller: str, before: Mapping[str, int]) -> Mapping[str, int]:
    """Read what jobs were learned to weigh, where that is asked for; what was known ``before`` where it cannot be read."""
    if not fleet.weights.asks(Source.LEARNED):
        return {}
    try:
        return ports.jobs.tracker(controller).weights
    except AutoscalerError as error:
        ports.log("weights_not_read", controller=controller, error=f"{type(error).__name__}: {error}")
        return before


def list_needs(ports: Ports, fleet: Fleet, pattern: str, most: int) -> NeedList:
    """List what jobs that match need."""
    return report_needs.list_needs(ports.jobs.all_rows(), fleet, pattern, most)


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
    try:
        return report_eta.told_together([entry for entry in _eta(ports, situation, subject) if entry.state != "not queued"])
    except AutoscalerError:
        return []
