"""How good predictions of starts and ends are: what `eta` would have said of each job, against what came."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from autoscaler.control import measure
from autoscaler.control.jobs import note_jobs
from autoscaler.domain.facts.job_stats import Estimate, WaitingItem
from autoscaler.domain.forecast.estimates import sum_of
from autoscaler_workbench.cli.assignments import load_with
from autoscaler_workbench.experiment.compare import Workload, carried_workloads
from autoscaler_workbench.fakes.world.jenkins.builds import Build
from autoscaler_workbench.simulate.drive import InProcess
from autoscaler_workbench.simulate.fleets import fleet_for
from autoscaler_workbench.simulate.run import prepare
from autoscaler_workbench.simulate.traces import MXNET, load_trace
from benchmarks.figures import Figures, count

_HOURS, _DAY, _MINUTE = 31 * 24.0, 86_400.0, 60.0
_NEAR = 0.2
Judged = tuple[WaitingItem, Build]


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


@dataclass(slots=True)
class _Predicting(InProcess):
    """The production passes, and what they predict of each item when they first see it."""

    items: dict[int, WaitingItem] = field(default_factory=dict)

    def publish_metrics(self) -> None:
        """Learn as when publishing, and note the jobs."""
        situation, lessons = measure.observe_and_learn(self.ports, self.fleet, self.ports.state.read(), self.invocation())
        note_jobs(self.ports, situation, lessons)
        for tracker in self.jobs.trackers.values():
            for item, predicted in tracker.waiting.items():
                self.items.setdefault(int(item), predicted)


def _rows(workload: Workload, note: str, *, with_stages: bool = True) -> list[tuple[str, ...]]:
    trace = load_trace(workload.file, hours=workload.hours)
    if not with_stages:
        trace = replace(trace, rows=tuple(replace(row, job=row.job.split(" ")[0]) for row in trace.rows))
    fleet = (load_with(workload.fleet, []) if workload.fleet else fleet_for(trace)).domain()
    run = prepare(trace, fleet, hours=workload.hours, seed=1)
    passes = _Predicting(run.world, fleet)
    for _ in run.drive(passes):
        passes.reports.clear()
        passes.logged.clear()
    judged = [
        (item, build)
        for build in run.replay.builds
        if build.started_at is not None and build.ended_at is not None and (item := passes.items.get(build.id))
    ]
    later = [(item, build) for item, build in judged if item.asked_at - trace.start_at >= _DAY]
    name = trace.name.removesuffix(".csv.gz") + note
    return [_row(name, judged), _row(f"{name}, later", later)]


def _row(name: str, judged: Sequence[Judged]) -> tuple[str, ...]:
    known = [(item.duration, build) for item, build in judged if item.duration]
    long = [(item, build) for item, build in judged if _begun(build) - build.buildable_at > _MINUTE]
    ends = [(sum_of(item.start, item.duration), _ended(build) - item.asked_at) for item, build in judged if item.start and item.duration]
    off = sorted(abs(_took(build) / takes.mid - 1) for takes, build in known)
    return (
        name,
        count(len(judged)),
        _share([item.duration is not None for item, _ in judged]),
        _share([_held(takes, _took(build)) for takes, build in known]),
        f"{off[len(off) // 2]:.0%}",
        _share([_held(item.start, _begun(build) - item.asked_at) for item, build in judged if item.start]),
        _share([_held(end, came) for end, came in ends]),
        count(len(long)),
        _share([_is_near(item, build) for item, build in long]),
    )


def _is_near(item: WaitingItem, build: Build) -> bool:
    came = _begun(build) - item.asked_at
    return item.start is not None and abs(item.start.mid - came) <= max(_MINUTE, _NEAR * came)


def _held(predicted: Estimate, came: float) -> bool:
    return predicted.low <= came <= predicted.high


def _begun(build: Build) -> float:
    return build.started_at or 0.0


def _ended(build: Build) -> float:
    return build.ended_at or 0.0


def _took(build: Build) -> float:
    return _ended(build) - _begun(build)


def _share(outcomes: Sequence[Any]) -> str:
    return f"{sum(outcomes) / len(outcomes):.0%}" if outcomes else "none"
