"""Follow what builds use, as agents tell it, to their end, and note it in the statistics of their jobs.

Only builds count that Jenkins shows on an agent whose machine tells of them: what a report says of any other build teaches nothing.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from autoscaler.domain.facts.job_stats import JobRow, JobTracker, MachineSize, Needs, OpenUse, RunningBuild, Subject, Used
from autoscaler.domain.facts.snapshot import Build
from autoscaler.domain.facts.telemetry import FRESH_SECONDS, BuildUse, Telemetry
from autoscaler.domain.forecast.estimates import next_record, subjects_of
from autoscaler.domain.forecast.spread import note_value
from autoscaler.domain.situation.agents import Agent
from autoscaler.domain.situation.situation import Situation

# Builds of a job use much the same, and there are six distributions of it: fewer steps are kept than of durations.
STEPS_KEPT = 16
# Of more at once only so many are followed: the tracker is read and written each minute.
USES_FOLLOWED = 1000
# A build without a process for so long is no step between two others.
_GONE_SECONDS = 30.0
# Of less than this no peak is known.
_LEAST_SECONDS = 15.0

Rows = Mapping[tuple[Subject, str], JobRow]  # by subject and pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Uses:
    """The tracker with what builds use, and the builds that have ended with all that they used."""

    tracker: JobTracker
    ended: tuple[OpenUse, ...] = ()

    @property
    def subjects(self) -> frozenset[Subject]:
        """Whose statistics it counts in."""
        return frozenset(subject for one in self.ended for subject in _subjects(one))


def follow_uses(tracker: JobTracker, situation: Situation, controller: str, reports: Mapping[str, Telemetry]) -> Uses:
    """Take in new reports, and find the builds that have ended. Without reports nothing is followed."""
    if not (reports or tracker.uses or tracker.reports) or not situation.snapshot.controllers[controller].complete:
        return Uses(tracker=tracker)
    uses = _told(_there(tracker, situation, controller, reports), tracker, reports)
    over = [key for key, one in uses.items() if _is_over(one, situation.now)]
    ended = tuple(one for one in (uses.pop(key) for key in over) if one.use and one.use.seconds >= _LEAST_SECONDS)
    told = {machine: one.told_at for machine, one in reports.items()}
    return Uses(tracker=replace(tracker, uses=uses, reports=told), ended=ended)


def _there(tracker: JobTracker, situation: Situation, controller: str, reports: Mapping[str, Telemetry]) -> dict[str, OpenUse]:
    """Return the builds that are followed after a look at the executors: those before, and those that began."""
    shown = dict(_shown(situation, controller, reports))
    uses = {key: _seen_again(one, situation.now, there=key in shown) for key, one in tracker.uses.items()}
    for key, (agent, build) in shown.items():
        if key not in uses and len(uses) < USES_FOLLOWED:
            uses[key] = _begun(agent, build, tracker.running.get(key))
    return uses


def _told(uses: dict[str, OpenUse], tracker: JobTracker, reports: Mapping[str, Telemetry]) -> dict[str, OpenUse]:
    """Return them with what new reports tell: of the builds of its own machine alone."""
    for machine, report in reports.items():
        if report.told_at > tracker.reports.get(machine, 0.0):
            mine = (use for use in report.builds if use.key in uses and uses[use.key].machine == machine)
            uses = {**uses, **{use.key: replace(uses[use.key], use=use, size=_size(report)) for use in mine}}
    return uses


def _shown(situation: Situation, controller: str, reports: Mapping[str, Telemetry]) -> Iterator[tuple[str, tuple[Agent, Build]]]:
    """Yield the builds on agents whose machines tell."""
    for agent in situation.agents:
        if agent.record.controller == controller and agent.node and agent.record.machine in reports:
            yield from ((build.key, (agent, build)) for build in agent.node.builds)


def _begun(agent: Agent, build: Build, running: RunningBuild | None) -> OpenUse:
    signature = running.signature if running else build.signature
    return OpenUse(job=build.job, run=build.run, signature=signature, pool=agent.pool.name, machine=agent.record.machine)


def _seen_again(one: OpenUse, now: float, *, there: bool) -> OpenUse:
    """Note since when Jenkins does not show a build."""
    if there:
        return replace(one, left_at=None) if one.left_at is not None else one
    return one if one.left_at is not None else replace(one, left_at=now)


def _is_over(one: OpenUse, now: float) -> bool:
    """Tell whether Jenkins does not show a build any more, and no report will say more of it."""
    if one.left_at is None:
        return False
    return (one.use is not None and one.use.gone > _GONE_SECONDS) or now - one.left_at > FRESH_SECONDS


def _size(report: Telemetry) -> MachineSize:
    return MachineSize(memory=report.memory_total, cores=report.cores, gpu_memory=sum(gpu.memory for gpu in report.gpus))


def note_uses(rows: Rows, ended: Iterable[OpenUse], controller: str, now: float) -> list[JobRow]:
    """Note what builds used in the row of each of their subjects."""
    changed: dict[tuple[Subject, str], JobRow] = {}
    for one in ended:
        for subject in _subjects(one):
            key = subject, one.pool
            row = changed.get(key) or rows.get(key)
            row = row or JobRow(controller=controller, subject=subject, pool=one.pool, first_at=now, seen_at=now)
            changed[key] = replace(row, needs=_with(row.needs, one.use, one.size, now)) if one.use else row
    return list(changed.values())


def _subjects(one: OpenUse) -> tuple[Subject, ...]:
    return subjects_of(one.job, one.run, one.signature)


def _with(needs: Needs, use: BuildUse, size: MachineSize, now: float) -> Needs:
    known = needs.alone if use.alone else needs.beside
    used = Used(
        memory=note_value(known.memory, max(1.0, use.memory), now, STEPS_KEPT),
        cores=note_value(known.cores, use.cpu / max(1.0, use.seconds), now, STEPS_KEPT),
        gpu_memory=note_value(known.gpu_memory, max(1.0, use.gpu_memory), now, STEPS_KEPT) if use.gpu else known.gpu_memory,
        gpu=next_record(known.gpu, use.gpu),
    )
    return replace(needs, machine=size, **{"alone" if use.alone else "beside": used})
