"""Follow jobs from look to look for the statistics: what began and ended, what had been predicted, and what it used."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from autoscaler.domain.facts.job_stats import (
    EndedUse,
    Estimate,
    JobRow,
    JobTracker,
    Machines,
    MachineSize,
    RunningBuild,
    Subject,
    Used,
    WaitingItem,
)
from autoscaler.domain.facts.memory import Learned, Sighting
from autoscaler.domain.facts.runs import BuildResult, RunEnd
from autoscaler.domain.facts.snapshot import LOOK_GAP_SECONDS, QueueItem, Wait
from autoscaler.domain.facts.telemetry import FRESH_SECONDS, BuildUse, Reports
from autoscaler.domain.forecast.durations import (
    best_row,
    duration_of,
    left_of,
    next_record,
    next_skill,
    note_end,
    note_start,
    note_value,
    start_kinds,
    start_of,
    subjects_of,
)
from autoscaler.domain.launch.queue import BareStart, bare_starts
from autoscaler.domain.report.jobs import Rows
from autoscaler.domain.situation.builds import last_look_at
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.situation.wants import Want

# Follow items and builds from look to look for the job statistics: what began, what ended, and what had been predicted.
#
# Only builds are counted whose beginning was seen. What ran before the first look, or began or ended in a gap between looks or while a
# controller restarted, teaches nothing.


# Of more at once only these are followed: the tracker is read and written with each look that shows a change.
ITEMS_FOLLOWED, BUILDS_FOLLOWED = 500, 2000
_NOBODY = -1_000_000  # ids of items that are not there begin here

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class _FollowedBuild:
    """A build as looks see it, and as it is followed."""

    sighting: Sighting
    build: RunningBuild

    @property
    def subjects(self) -> tuple[Subject, ...]:
        """Whose statistics it counts in, and tell how long it takes."""
        return subjects_of(self.sighting.job, self.sighting.run, self.build.signature)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedBuild(_FollowedBuild):
    """A build that was followed from its beginning to its end. ``seen_seconds``: as looks saw it, give or take their ``gap_seconds``."""

    key: str
    seen_seconds: float
    gap_seconds: float

    def seconds(self, end: RunEnd | None) -> float:
        """Return how long it took: as Jenkins says of its run, where that is what was seen and not a pipeline with other steps."""
        told = end.seconds if end else None
        return max(1.0, told if told is not None and abs(told - self.seen_seconds) <= self.gap_seconds else self.seen_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunBuild(_FollowedBuild):
    """A build that was not there in the last look. ``item``: what it was in the queue, None: never seen there; ``build``: unpredicted."""

    item: WaitingItem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What a look shows that the last one did not. ``begun``: builds by key; ``tracker``: without what ended or left."""

    tracker: JobTracker
    ended: tuple[EndedBuild, ...] = ()
    begun: Mapping[str, BegunBuild] = field(default_factory=dict)
    came: tuple[Want, ...] = ()

    def __bool__(self) -> bool:
        """Tell whether there is anything to note."""
        return bool(self.ended or self.begun or self.came)

    @property
    def subjects(self) -> frozenset[Subject]:
        """Whose statistics are needed to note it."""
        of_begun = (begun.subjects for begun in self.begun.values())
        of_came = (subjects_of(want.item.job, want.item.run, want.item.signature) for want in self.came)
        return frozenset(subject for many in (*(one.subjects for one in self.ended), *of_begun, *of_came) for subject in many)


def changes_of(tracker: JobTracker, situation: Situation, controller: str, after: Learned) -> Changes:
    """Compare a look with the last one. ``after``: what was learned from it."""
    before, now = situation.snapshot.learned[controller], situation.now
    wants = {str(want.item.id): want for want in situation.demands[controller].wants}
    last_at = last_look_at(situation, controller)
    # Nothing was followed if there was no look before, or if that says nothing of what is there now.
    if last_at is None or now - last_at > LOOK_GAP_SECONDS or situation.recovering(controller):
        tracker, last_at = replace(tracker, running={}, waiting={}), now
    waiting, left = _parted(tracker.waiting, wants)
    # What runs on an agent whose record is not there is no sighting, and has not ended for all that.
    shown = {build.key for node in situation.snapshot.controllers[controller].nodes for build in node.builds}
    running, gone = _parted(tracker.running, shown)
    fresh = {key: sighting for key, sighting in after.running.items() if key not in before.running and key not in running}
    return Changes(
        tracker=replace(tracker, waiting=waiting, running=running),
        ended=tuple(
            EndedBuild(
                key=key,
                sighting=before.running[key],
                build=build,
                seen_seconds=(last_at + now) / 2 - build.since_at,
                gap_seconds=now - last_at,
            )
            for key, build in gone.items()
            if key in before.running
        ),
        begun=dict(_begun(situation, controller, fresh, left, last_at)) if last_at < now else {},
        came=tuple(want for item, want in wants.items() if item not in waiting)[: max(0, ITEMS_FOLLOWED - len(waiting))],
    )


def _parted(known: Mapping[str, T], there: Collection[str]) -> tuple[dict[str, T], dict[str, T]]:
    """Part what is still there from what is not."""
    return {key: one for key, one in known.items() if key in there}, {key: one for key, one in known.items() if key not in there}


def _begun(
    situation: Situation, controller: str, fresh: Mapping[str, Sighting], left: Mapping[str, WaitingItem], last_at: float
) -> Iterator[tuple[str, BegunBuild]]:
    """Match each build that began to an item of its job that left the queue: of several to one with its signature, the oldest first."""
    before, now = situation.snapshot.learned[controller], situation.now
    signatures = {build.key: build.signature for node in situation.snapshot.controllers[controller].nodes for build in node.builds}
    waited = {item: (job, seconds) for key, seconds in before.waiting.items() for item, _, job in [key.partition("\n")]}
    free = sorted((item for item in left if item in waited), key=lambda item: -waited[item][1])
    for key, sighting in fresh.items():
        # Where Jenkins does not tell the age of a build, it began somewhere between the two looks.
        since_at = sighting.since_at if last_at <= sighting.since_at < now else (last_at + now) / 2
        build, item = RunningBuild(signature=signatures.get(key, ""), since_at=since_at, waited=None, on_time=None, duration=None), None
        if mine := [item for item in free if waited[item][0] == sighting.job]:
            name = next((name for name in mine if left[name].signature == build.signature), mine[0])
            free.remove(name)  # each is taken once
            item, seconds = left[name], waited[name][1] + max(0.0, since_at - last_at)
            build = replace(build, signature=item.signature or build.signature, waited=seconds)
        yield key, BegunBuild(sighting=sighting, build=build, item=item)


def note_changes(
    changes: Changes, rows: Rows, situation: Situation, controller: str, ends: Mapping[str, RunEnd]
) -> tuple[JobTracker, tuple[JobRow, ...]]:
    """Note what began and ended, and predict what came; return the tracker then, and the rows that changed.

    ``ends``: of builds that ended, by run, where Jenkins was asked.
    """
    tracker, changed = changes.tracker, dict[tuple[Subject, str], JobRow]()
    for ended in changes.ended:
        tracker, new = _note_ended(tracker, {**rows, **changed}, ended, controller, ends.get(ended.sighting.run), situation.now)
        changed |= {(row.subject, row.pool): row for row in new}
    known: Rows = {**rows, **changed}
    for key, begun in changes.begun.items():
        tracker = _note_begun(tracker, known, key, begun)
    # Predict when the items start that were not there in the last look, and how long they take.
    durations = {want.item.id: item_duration(want, known, tracker) for want in changes.came}
    takes = {item: duration.mid for item, duration in durations.items() if duration}
    starts = starts_of(situation, controller, tracker, takes) if durations else {}
    predicted: dict[str, WaitingItem] = {}
    for want in changes.came:
        bare = starts.get(want.item.id)
        item = WaitingItem(signature=want.item.signature, asked_at=situation.now, duration=durations[want.item.id])
        if bare:
            kinds = start_kinds(bare.waits_for, bare.server, mature=want.mature)
            start, corrected = start_of(bare.seconds, kinds, tracker)
            item = replace(item, start=start, bare_seconds=bare.seconds, corrected_seconds=corrected, kinds=kinds)
        predicted[str(want.item.id)] = item
    return replace(tracker, waiting={**tracker.waiting, **predicted}), tuple(changed.values())


def _note_ended(
    tracker: JobTracker, rows: Rows, ended: EndedBuild, controller: str, end: RunEnd | None, now: float
) -> tuple[JobTracker, list[JobRow]]:
    """Note the end of a build in the row of each of its subjects, and what had been predicted."""
    pool, build = ended.sighting.pool, ended.build
    mine = [
        rows.get((subject, pool)) or JobRow(controller=controller, subject=subject, pool=pool, first_at=build.since_at, seen_at=now)
        for subject in ended.subjects
    ]
    predicted, seconds = duration_of(best_row(mine, tracker.skills), tracker), ended.seconds(end)
    for row in mine:
        tracker = note_end(tracker, row, seconds, now)
    return tracker, [
        replace(
            row,
            seen_at=now,
            runs=row.runs + 1,
            results=next_record(row.results, end.result is BuildResult.SUCCEEDED if end and end.result else None),
            durations=note_value(row.durations, seconds, now),
            waits=row.waits if build.waited is None else note_value(row.waits, max(1.0, build.waited), now),
            ranges=next_record(row.ranges, predicted.low <= seconds <= predicted.high if predicted else None),
            starts=next_record(row.starts, build.on_time),
            skill=next_skill(row.skill, seconds / predicted.mid) if predicted else row.skill,
        )
        for row in mine
    ]


def _note_begun(tracker: JobTracker, rows: Rows, key: str, begun: BegunBuild) -> JobTracker:
    """Follow a build, and note what came of its predicted start."""
    mine = [row for subject in begun.subjects if (row := rows.get((subject, begun.sighting.pool)))]
    item, since_at = begun.item, begun.build.since_at
    takes = duration_of(best_row(mine, tracker.skills), tracker) or (item.duration if item else None)
    on_time = None
    if item and item.start:
        took = since_at - item.asked_at
        tracker, on_time = note_start(tracker, item, took, since_at), item.start.low <= took <= item.start.high
    if len(tracker.running) >= BUILDS_FOLLOWED:
        return tracker
    return replace(tracker, running={**tracker.running, key: replace(begun.build, on_time=on_time, duration=takes)})


def item_duration(want: Want, rows: Rows, tracker: JobTracker) -> Estimate | None:
    """Estimate how long an item's build takes, in the first of its pools that has seen its like."""
    subjects = subjects_of(want.item.job, want.item.run, want.item.signature)
    for pool in want.pools:
        mine = [row for subject in subjects if (row := rows.get((subject, pool.name)))]
        if known := duration_of(best_row(mine, tracker.skills), tracker):
            return known
    return None


def starts_of(situation: Situation, controller: str, tracker: JobTracker, takes: Mapping[int, float]) -> dict[int, BareStart]:
    """Predict when items start, by item, from what is known of builds and items; ``takes``: seconds that others take."""
    known = {int(item): waiting.duration.mid for item, waiting in tracker.waiting.items() if waiting.duration}
    return bare_starts(situation, controller, ends_of(tracker, situation.now), {**known, **takes})


def if_queued(situation: Situation, pool: PoolView, job: str, count: int) -> tuple[Situation, list[Want]]:
    """Return the situation with so many builds of a job at the end of the queue that a pool alone serves, and these wants."""
    alike = QueueItem(
        id=_NOBODY, job=job, run="", label=None, labelless=False, wait=Wait(for_executor=True), buildable=True, waiting_seconds=0.0
    )
    wants = [Want(item=replace(alike, id=_NOBODY - number), pools=(pool.spec,), expression=None) for number in range(count)]
    demand = situation.demands[pool.controller]
    queued = replace(demand, wants=(*demand.wants, *wants))
    return replace(situation, demands={**situation.demands, pool.controller: queued}), wants


def ends_of(tracker: JobTracker, now: float) -> dict[str, float]:
    """Predict in how many seconds builds end, by key; without those of which it is not known."""
    lefts = {key: left_of(build.duration, now - build.since_at) for key, build in tracker.running.items() if build.duration}
    return {key: left.mid for key, left in lefts.items() if left}


# Note what builds used in the statistics of their jobs, once they have ended and their machine has reported it.
#
# An agent reports each build from its beginning on, and twice more after it has ended: nothing is kept about running builds.
# Only builds count that looks followed on this very machine: what a report says of any other teaches nothing.


# Builds of a job use much the same, and there are six distributions of it: fewer steps are kept than of durations.
STEPS_KEPT = 16
# A pool has machines of a few sizes.
SIZES_KEPT = 4
# Of more at once only so many are waited for.
USES_FOLLOWED = 1000
# Of less than this no peak is known.
_LEAST_SECONDS = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldUse:
    """What a build used from its beginning to its end, and the size of the machine that it ran on."""

    build: EndedUse
    use: BuildUse
    machine: MachineSize


def subjects_of_uses(told: Iterable[ToldUse]) -> frozenset[Subject]:
    """Return whose statistics these uses count in."""
    return frozenset(subject for one in told for subject in _subjects(one.build))


def follow_uses(
    tracker: JobTracker, ended: Iterable[EndedBuild], situation: Situation, reports: Reports
) -> tuple[JobTracker, tuple[ToldUse, ...]]:
    """Wait for what machines tell of the builds that have ended: the tracker has those of which it is yet to come; and what was told."""
    waiting = dict(tracker.uses)
    machines = {record.node: record.machine for record in situation.snapshot.records if record.node}
    for build in ended:
        machine = machines.get(build.sighting.node, "")
        if machine in reports and len(waiting) < USES_FOLLOWED:
            seen, signature = build.sighting, build.build.signature
            waiting[build.key] = EndedUse(
                job=seen.job, run=seen.run, signature=signature, pool=seen.pool, machine=machine, ended_at=situation.now
            )
    told = dict(_told(waiting, reports, situation.now))
    left = {key: one for key, one in waiting.items() if key not in told and not _is_late(one, situation.now)}
    if left.keys() != tracker.uses.keys():
        tracker = replace(tracker, uses=left)
    return tracker, tuple(told.values())


def _told(waiting: Mapping[str, EndedUse], reports: Reports, now: float) -> Iterator[tuple[str, ToldUse]]:
    """Yield those of which a report was told after their end; where none comes, those of which the last one tells."""
    for key, one in waiting.items():
        report = reports.get(one.machine)
        use = next((use for use in report.builds if use.key == key), None) if report else None
        if report and use and use.seconds >= _LEAST_SECONDS and (report.told_at > one.ended_at or _is_late(one, now)):
            has_gpu = any(gpu.memory > 0.0 for gpu in report.gpus)
            yield key, ToldUse(build=one, use=use, machine=MachineSize(memory=report.memory_total, cores=report.cores, has_gpu=has_gpu))


def _is_late(one: EndedUse, now: float) -> bool:
    return now - one.ended_at > FRESH_SECONDS


def note_uses(rows: Rows, told: Iterable[ToldUse], controller: str, now: float) -> list[JobRow]:
    """Note what builds used in the row of each of their subjects."""
    changed: dict[tuple[Subject, str], JobRow] = {}
    for one in told:
        for subject in _subjects(one.build):
            key = subject, one.build.pool
            row = changed.get(key) or rows.get(key)
            row = row or JobRow(controller=controller, subject=subject, pool=one.build.pool, first_at=now, seen_at=now)
            use, size, needs = one.use, one.machine, row.needs
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
            changed[key] = replace(row, needs=replace(needs, ran_on=ran_on, **{"alone" if use.alone else "beside": used}))
    return list(changed.values())


def _subjects(one: EndedUse) -> tuple[Subject, ...]:
    return subjects_of(one.job, one.run, one.signature)
