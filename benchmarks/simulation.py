"""How long a trace takes to play: the production passes in the simulated world, on one core."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from autoscaler_workbench.cli.assignments import load_with
from autoscaler_workbench.experiment.compare import Workload, carried_workloads
from autoscaler_workbench.experiment.experiment import Experiment, play
from autoscaler_workbench.simulate.fleets import fleet_for
from autoscaler_workbench.simulate.traces import MXNET, load_trace
from benchmarks.figures import Figures, count, seconds

_HOURS = 31 * 24.0
_MINUTE, _QUARTER = 60.0, 15.0


def measure(more: Sequence[Path] = ()) -> Iterator[Figures]:
    """Play each carried trace to its end, at a look a minute as in production and at four. ``more``: files, at a look a minute."""
    carried = carried_workloads(Workload(file=MXNET, hours=_HOURS))
    rows = [_row(workload, (_MINUTE, _QUARTER)) for workload in carried]
    rows += [(*_row(Workload(file=file, hours=_HOURS), (_MINUTE,)), "not asked") for file in more]
    yield Figures(
        "Playing a trace",
        "Each carried trace as a whole, played once by the production passes in memory on one core. A look that would see what the last "
        "one saw is left out, for up to a minute. In brackets: how many times faster than real time.",
        ("trace", "jobs", "hours", *(f"a look every {every:g} s" for every in (_MINUTE, _QUARTER))),
        tuple(rows),
    )


def _row(workload: Workload, looks_every: Sequence[float]) -> tuple[str, ...]:
    trace = load_trace(workload.file, hours=workload.hours)
    fleet = load_with(workload.fleet, []) if workload.fleet else fleet_for(trace)
    hours = (max(row.queued_at for row in trace.rows) - trace.start_at) / 3600
    took = [
        play(Experiment(trace=trace, fleet=fleet, hours=hours, settings={"looks_every_seconds": every}))["took_s"] for every in looks_every
    ]
    cells = (f"{seconds(took_s)} ({count(hours * 3600 / took_s)})" for took_s in took)
    return trace.name, count(len(trace.rows)), count(hours), *cells
