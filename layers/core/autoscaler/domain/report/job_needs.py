"""Note what builds used in the statistics of their jobs, once they have ended and their machine has reported it.

An agent reports each build from its beginning on, and twice more after it has ended: nothing is kept about running builds.
Only builds count that looks followed on this very machine: what a report says of any other teaches nothing.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from autoscaler.domain.facts.job_stats import EndedUse, JobRow, JobTracker, Machines, MachineSize, Needs, Subject, Used
from autoscaler.domain.facts.telemetry import FRESH_SECONDS, BuildUse, Telemetry
from autoscaler.domain.forecast.durations import next_record, note_value, subjects_of
from autoscaler.domain.report.job_tracking import EndedBuild
from autoscaler.domain.situation.situation import Situation

# Builds of a job use much the same, and there are six distributions of it: fewer steps are kept than of durations.
STEPS_KEPT = 16
# A pool has machines of a few sizes.
SIZES_KEPT = 4
# Of more at once only so many are waited for.
USES_FOLLOWED = 1000
# Of less than this no peak is known.
_LEAST_SECONDS = 15.0

Rows = Mapping[tuple[Subject, str], JobRow]  # by subject and pool
Reports = Mapping[str, Telemetry]  # by machine


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldUse:
    """What a build used from its beginning to its end, and the size of the machine that it ran on."""

    build: EndedUse
    use: BuildUse
    machine: MachineSize


@dataclass(frozen=True, slots=True, kw_only=True)
class Uses:
    """The tracker with the builds whose end is yet to be told of, and those of which it is."""

    tracker: JobTracker
    told: tuple[ToldUse, ...] = ()

    @property
    def subjects(self) -> frozenset[Subject]:
        """Whose statistics it counts in."""
        return frozenset(subject for one in self.told for subject in _subjects(one.build))


def follow_uses(tracker: JobTracker, ended: Iterable[EndedBuild], situation: Situation, reports: Reports) -> Uses:
    """Wait for what machines tell of the builds that have ended, and take what they have told."""
    waiting = dict(tracker.uses)
    machines = {record.node: record.machine for record in situation.snapshot.records if record.node}
    for build in ended:
        machine = machines.get(build.sighting.node, "")
        if machine in reports and len(waiting) < USES_FOLLOWED:
            waiting[build.key] = _ended(build, machine, situation.now)
    told = dict(_told(waiting, reports, situation.now))
    left = {key: one for key, one in waiting.items() if key not in told and not _is_late(one, situation.now)}
    if left.keys() != tracker.uses.keys():
        tracker = replace(tracker, uses=left)
    return Uses(tracker=tracker, told=tuple(told.values()))


def _ended(build: EndedBuild, machine: str, now: float) -> EndedUse:
    seen = build.sighting
    return EndedUse(job=seen.job, run=seen.run, signature=build.build.signature, pool=seen.pool, machine=machine, ended_at=now)


def _told(waiting: Mapping[str, EndedUse], reports: Reports, now: float) -> Iterator[tuple[str, ToldUse]]:
    """Yield those of which a report was told after their end; where none comes, those of which the last one tells."""
    for key, one in waiting.items():
        report = reports.get(one.machine)
        use = next((use for use in report.builds if use.key == key), None) if report else None
        if report and use and use.seconds >= _LEAST_SECONDS and (report.told_at > one.ended_at or _is_late(one, now)):
            yield key, ToldUse(build=one, use=use, machine=_size(report))


def _is_late(one: EndedUse, now: float) -> bool:
    return now - one.ended_at > FRESH_SECONDS


def _size(report: Telemetry) -> MachineSize:
    return MachineSize(memory=report.memory_total, cores=report.cores, has_gpu=any(gpu.memory > 0.0 for gpu in report.gpus))


def note_uses(rows: Rows, told: Iterable[ToldUse], controller: str, now: float) -> list[JobRow]:
    """Note what builds used in the row of each of their subjects."""
    changed: dict[tuple[Subject, str], JobRow] = {}
    for one in told:
        for subject in _subjects(one.build):
            key = subject, one.build.pool
            row = changed.get(key) or rows.get(key)
            row = row or JobRow(controller=controller, subject=subject, pool=one.build.pool, first_at=now, seen_at=now)
            changed[key] = replace(row, needs=_with(row.needs, one.use, one.machine, now))
    return list(changed.values())


def _subjects(one: EndedUse) -> tuple[Subject, ...]:
    return subjects_of(one.job, one.run, one.signature)


def _with(needs: Needs, use: BuildUse, size: MachineSize, now: float) -> Needs:
    known = needs.alone if use.alone else needs.beside
    used = Used(  # no build uses more than its machine has
        memory=note_value(known.memory, max(1.0, min(use.memory, size.memory)), now, STEPS_KEPT),
        cores=note_value(known.cores, min(use.cpu / max(1.0, use.seconds), size.cores), now, STEPS_KEPT),
        gpu_memory=note_value(known.gpu_memory, max(1.0, use.gpu_memory), now, STEPS_KEPT) if use.gpu else known.gpu_memory,
        gpu=next_record(known.gpu, use.gpu),
    )
    ran_on = Machines(
        memory=note_value(needs.ran_on.memory, size.memory, now, SIZES_KEPT),
        cores=note_value(needs.ran_on.cores, size.cores, now, SIZES_KEPT),
        gpu=next_record(needs.ran_on.gpu, size.has_gpu),
    )
    return replace(needs, ran_on=ran_on, **{"alone" if use.alone else "beside": used})
