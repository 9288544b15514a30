"""What all jobs cost together, against the meter of the month's limit and against the bill, in recorded weeks."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from autoscaler.adapters.stores import DynamoCosts
from autoscaler.config import load_settings
from autoscaler.control import measure
from autoscaler.control.statistics import note_costs
from autoscaler.domain.facts.job_settings import CostBatch, MonthCosts
from autoscaler.domain.report.costs import By, in_month, list_costs
from autoscaler_workbench.cli.assignments import load_with
from autoscaler_workbench.fakes.world.physics import Physics
from autoscaler_workbench.simulate.drive import InProcess
from autoscaler_workbench.simulate.fleets import EXAMPLE_FLEET, fleet_for
from autoscaler_workbench.simulate.result import billed_dollars, run_seconds
from autoscaler_workbench.simulate.run import Run, prepare
from autoscaler_workbench.simulate.traces import MXNET, load_trace
from benchmarks.canned import Client
from benchmarks.figures import Figures, count

_WEEK, _HOUR = 168.0, 3600.0
_LINKERD = MXNET.parent / "linkerd_gha.csv.gz"
_SPOT = tuple(f"{pool}.market=spot" for pool in load_settings(EXAMPLE_FLEET).pools if pool != "utility")
# Name, trace, settings that differ from the example's, and how far spot prices move.
_RUNS = (
    ("mxnet_stages", MXNET, (), 0.0),
    ("mxnet_stages, stopped agents", MXNET, ("warm_pool={instance_stores: true}",), 0.0),
    ("mxnet_stages, spot prices that move", MXNET, _SPOT, 0.4),
    ("linkerd_gha", _LINKERD, (), 0.0),
)


def measure_bill() -> Iterator[Figures]:
    """Play recorded weeks, and add up what jobs cost."""
    played = Parallel(n_jobs=-1)(delayed(_play)(*run) for run in _RUNS)
    yield Figures(
        "What jobs cost",
        "Recorded weeks, a look a minute. All jobs: the dollars of all jobs together, with what nobody used; against the meter, which "
        "the month's limit goes by, and against the world's bill. Idle: the share of boots, idle and stopped agents. Hours off: how far "
        "the hours that builds were seen to run are from those that they ran, of all together and, in the mean, of each job. Bytes: of "
        "the month's item; writes: of the table, for each hour.",
        (
            "trace",
            "builds",
            "jobs",
            "all jobs",
            "metered",
            "off",
            "bill",
            "off",
            "idle",
            "hours off",
            "of each job",
            "bytes",
            "writes an hour",
        ),
        tuple(played),
    )


@dataclass(slots=True)
class _Counting(InProcess):
    """The production passes, which note what jobs cost."""

    metered_months: dict[str, float] = field(default_factory=dict)  # what each month came to

    def publish_metrics(self) -> None:
        """Learn as when publishing, and note the costs."""
        situation, lessons = measure.observe_and_learn(self.ports, self.fleet, self.ports.state.read(), self.invocation())
        note_costs(self.ports, situation, lessons)

    def scale_down(self) -> dict[str, Any]:
        """Run one tick, and note what the meter has then."""
        answer = InProcess.scale_down(self)
        metered = self.state.memory.month
        self.metered_months[metered.name] = metered.usd
        return answer

    def months(self) -> list[MonthCosts]:
        """The costs of each month, with what is not added yet."""
        store = self.costs
        return [in_month(store.month(name), store.batch(), self.state.memory.month) for name in self.metered_months]


def _play(name: str, file: Path, assignments: tuple[str, ...], swing: float) -> tuple[str, ...]:
    trace = load_trace(file, hours=_WEEK)
    settings = load_with(EXAMPLE_FLEET, assignments) if file == MXNET else fleet_for(trace)
    run = prepare(trace, settings.domain(), hours=_WEEK, seed=1, physics=Physics(spot_swing=swing))
    passes = _Counting(run.world, run.world.fleet)
    for _ in run.drive(passes):
        passes.reports.clear()
        passes.logged.clear()
    return _row(name, run, passes)


def _row(name: str, run: Run, passes: _Counting) -> tuple[str, ...]:
    months, world = passes.months(), run.world
    lists = [list_costs(month, world.fleet, By.JOB) for month in months]
    usd, metered, bill = sum(one.usd for one in lists), sum(passes.metered_months.values()), billed_dollars(run.world)
    idle = sum(entry.idle_usd for one in lists for entry in one.entries)
    told, ran = defaultdict[str, float](float), defaultdict[str, float](float)
    for entry in (entry for one in lists for entry in one.entries):
        told[entry.name] += entry.hours
    for build in run.replay.builds:
        ran[build.job] += run_seconds(world, build) / _HOUR
    hours, off = sum(ran.values()), sum(abs(told[job] - ran[job]) for job in {**told, **ran})
    return (
        name,
        count(len(run.replay.builds)),
        count(len(ran)),
        f"${usd:,.2f}",
        f"${metered:,.2f}",
        f"{usd / metered - 1:+.3%}",
        f"${bill:,.2f}",
        f"{usd / bill - 1:+.2%}",
        f"{idle / usd:.0%}",
        f"{sum(told.values()) / hours - 1:+.1%}",
        f"{off / hours:.1%}",
        count(max(_bytes_of(month) for month in months)),
        f"{passes.costs.writes / ((world.timeline.now - run.trace.start_at) / _HOUR):.0f}",
    )


def _bytes_of(month: MonthCosts) -> int:
    """The packed size of a month's item."""
    client = Client({})
    table: Any = client
    DynamoCosts(lambda: table, "table", "fleet").book([month], CostBatch(), 0.0)
    return len(client.written[0]["body"]["B"])
