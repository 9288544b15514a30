"""How good predictions of starts and ends are: what `eta` would have said of each job, against what came."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from autoscaler.control import measure
from autoscaler.control.statistics import note_jobs
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.facts.job_settings import JobParameters
from autoscaler.domain.facts.job_stats import Estimate, WaitingItem
from autoscaler.domain.forecast.durations import sum_of
from autoscaler_workbench.cli.assignments import load_with
from autoscaler_workbench.experiment.compare import Workload, carried_workloads
from autoscaler_workbench.fakes.world.jenkins.builds import Build
from autoscaler_workbench.simulate.drive import InProcess
from autoscaler_workbench.simulate.fleets import fleet_for
from autoscaler_workbench.simulate.run import prepare
from autoscaler_workbench.simulate.traces import MXNET, Trace, load_trace
from benchmarks.figures import Figures, count
from benchmarks.parameters import MADE_UP, made_up_loads

_HOURS, _DAY, _MINUTE = 31 * 24.0, 86_400.0, 60.0
_NEAR = 0.2


@dataclass(frozen=True, slots=True)
class _Judged:
    """What was predicted of a build when it was first seen in the queue, and what came. None: nothing was predicted."""

    item: WaitingItem
    build: Build

    @property
    def waits(self) -> float:
        """Seconds from that look until it began."""
        return (self.build.started_at or 0.0) - self.item.asked_at

    @property
    def took(self) -> float:
        """Seconds on its executor."""
        return _took(self.build)

    @property
    def duration_held(self) -> bool | None:
        """Tell whether it took as long as predicted."""
        return _held(self.item.duration, self.took)

    @property
    def start_held(self) -> bool | None:
        """Tell whether it began when predicted."""
        return _held(self.item.start, self.waits)

    @property
    def end_held(self) -> bool | None:
        """Tell whether it ended when predicted."""
        known = self.item.start and self.item.duration
        return _held(sum_of(self.item.start, self.item.duration), self.waits + self.took) if known else None  # type: ignore[arg-type]

    @property
    def start_near(self) -> bool | None:
        """Tell whether it began close to the middle of what was predicted; None of those that waited for less than a minute."""
        if (self.build.started_at or 0.0) - self.build.buildable_at <= _MINUTE:
            return None
        return self.item.start is not None and abs(self.item.start.mid - self.waits) <= max(_MINUTE, _NEAR * self.waits)


def measure_predictions() -> Iterator[Figures]:
    """Play each carried trace, with and without stages, and judge what was predicted when each job was first seen in the queue."""
    workloads = carried_workloads(Workload(file=MXNET, hours=_HOURS))
    rows = [row for workload in workloads for row in _rows(workload, "")]
    rows += _rows(workloads[0], " without stages", with_stages=False)
    yield Figures(
        "Predicted starts and ends",
        "Each carried trace, played once as a whole, a look a minute. Judged is what was predicted at the look that first saw a job in "
        "the queue: the shares of ranges that held, which are to be 75 to 85 %, and of jobs that waited for longer than a minute the share "
        "whose start was within 20 % or a minute of what was predicted. Known: the share of which a duration was predicted. Off by: the "
        "median of how far off predicted durations were. Later: without the first day, in which the fleet knows nothing.",
        ("trace", "jobs", "known", "duration held", "off by", "start held", "end held", "waited over a minute", "start near"),
        tuple(rows),
    )
    yield _durations_by_parameters()


def _durations_by_parameters() -> Figures:
    return Figures(
        "Durations by parameters",
        f"Made-up loads, since no carried trace has parameters: {MADE_UP}. Judged is what was predicted at the look that first saw a build "
        "on its executor, without the first day. Key: whether job_parameters names SUITE. Off by: the median of how far off predicted "
        "durations were; held: the share of ranges, which is to be 75 to 85 %.",
        ("load", "key", "builds", "known", "duration held", "off by"),
        tuple(_by_parameters()),
    )


@dataclass(slots=True)
class _Predicting(InProcess):
    """The production passes, and what they predict of each item when they first see it."""

    items: dict[int, WaitingItem] = field(default_factory=dict)
    builds: dict[str, Estimate | None] = field(default_factory=dict)  # how long each takes, by its run's path

    def publish_metrics(self) -> None:
        """Learn as when publishing, and note the jobs."""
        situation, lessons = measure.observe_and_learn(self.ports, self.fleet, self.ports.state.read(), self.invocation())
        note_jobs(self.ports, situation, lessons, {})
        for tracker in self.jobs.trackers.values():
            for item, predicted in tracker.waiting.items():
                self.items.setdefault(int(item), predicted)
            for key, build in tracker.running.items():
                self.builds.setdefault(f"{key.split('/', 2)[2]}/", build.duration)


def _rows(workload: Workload, note: str, *, with_stages: bool = True) -> list[tuple[str, ...]]:
    trace = load_trace(workload.file, hours=workload.hours)
    if not with_stages:
        trace = replace(trace, rows=tuple(replace(row, job=row.job.split(" ")[0]) for row in trace.rows))
    fleet = (load_with(workload.fleet, []) if workload.fleet else fleet_for(trace)).domain()
    judged = _judged(trace, fleet, hours=workload.hours)
    name = trace.name.removesuffix(".csv.gz") + note
    return [_row(name, judged), _row(f"{name}, later", _later(judged, trace))]


def _by_parameters() -> Iterator[tuple[str, ...]]:
    """Play each made-up load without the key, and with it: what is predicted of each build when it is first seen to run."""
    for load in made_up_loads():
        for name, told_apart in (("without", JobParameters()), ("with", load.told_apart)):
            fleet = replace(fleet_for(load.trace).domain(), job_parameters=told_apart)
            passes, ended = _played(load.trace, fleet, hours=load.hours)
            seen = [build for build in ended if build.run_path in passes.builds and build.queued_at - load.trace.start_at >= _DAY]
            known = [(takes, _took(build)) for build in seen if (takes := passes.builds[build.run_path])]
            off = median(abs(took / takes.mid - 1) for takes, took in known)
            held = _share([_held(takes, took) for takes, took in known])
            yield load.trace.name, name, count(len(seen)), f"{len(known) / len(seen):.0%}", held, f"{off:.0%}"


def _later(judged: Sequence[_Judged], trace: Trace) -> list[_Judged]:
    return [one for one in judged if one.item.asked_at - trace.start_at >= _DAY]


def _judged(trace: Trace, fleet: Fleet, *, hours: float) -> list[_Judged]:
    passes, ended = _played(trace, fleet, hours=hours)
    return [_Judged(item, build) for build in ended if (item := passes.items.get(build.id))]


def _played(trace: Trace, fleet: Fleet, *, hours: float) -> tuple[_Predicting, list[Build]]:
    """Play a trace, and return what was predicted, and the builds that ended."""
    run = prepare(trace, fleet, hours=hours, seed=1)
    passes = _Predicting(run.world, fleet)
    for _ in run.drive(passes):
        passes.reports.clear()
        passes.logged.clear()
    return passes, [build for build in run.replay.builds if build.started_at is not None and build.ended_at is not None]


def _took(build: Build) -> float:
    return (build.ended_at or 0.0) - (build.started_at or 0.0)


def _row(name: str, judged: Sequence[_Judged]) -> tuple[str, ...]:
    off = sorted(abs(one.took / one.item.duration.mid - 1) for one in judged if one.item.duration)
    near = [one.start_near for one in judged]
    return (
        name,
        count(len(judged)),
        f"{len(off) / len(judged):.0%}",
        _share([one.duration_held for one in judged]),
        f"{off[len(off) // 2]:.0%}",
        _share([one.start_held for one in judged]),
        _share([one.end_held for one in judged]),
        count(sum(outcome is not None for outcome in near)),
        _share(near),
    )


def _held(predicted: Estimate | None, came: float) -> bool | None:
    return None if predicted is None else predicted.low <= came <= predicted.high


def _share(outcomes: Sequence[bool | None]) -> str:
    """Return the share that came true of those of which it is known."""
    known = [outcome for outcome in outcomes if outcome is not None]
    return f"{sum(known) / len(known):.0%}" if known else "none"
