"""What each part of the learning is worth: ours without it, on recorded weeks and made-up loads."""

from collections import defaultdict
from collections.abc import Iterator
from statistics import fmean

from joblib import Parallel, delayed

from autoscaler_workbench.cli.assignments import load_with
from autoscaler_workbench.experiment.ablation import PARTS
from autoscaler_workbench.experiment.compare import FIXED, WITHOUT
from autoscaler_workbench.experiment.experiment import Experiment, play
from autoscaler_workbench.simulate.fleets import EXAMPLE_FLEET, fleet_for
from autoscaler_workbench.simulate.traces import MXNET, load_trace
from benchmarks import made_up
from benchmarks.against_rivals import Load
from benchmarks.figures import Figures

_WEEK_HOURS = 168.0
_MXNET_HOURS = 113.0
_NOTHING = ""


def measure() -> Iterator[Figures]:
    """Play every load with everything, and without each part."""
    loads = [*recorded(), *made_up.loads()]
    asked = [(load, part) for load in loads for part in (_NOTHING, *PARTS)]
    played = Parallel(n_jobs=-1)(delayed(_total_usd)(*what) for what in asked)
    totals: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for (load, part), total in zip(asked, played, strict=True):
        totals[load.name, part].append(total)
    yield Figures(
        "What the parts of the learning are worth",
        "Total (the bill, and waiting at $20 an hour) with everything, and how much more it is without each part. Recorded weeks: one "
        "run each (chance moves it by one or two per cent), after the first week with a week of lead-in. Made-up loads: as above.",
        ("load", "everything", *(f"no {part}" for part in PARTS)),
        tuple(
            (name, *_row([fmean(totals[name, part]) for part in (_NOTHING, *PARTS)])) for name in dict.fromkeys(load.name for load in loads)
        ),
    )


def recorded() -> Iterator[Load]:
    """The weeks that were recorded, after the first one with a week of lead-in."""
    yield Load(name="mxnet_stages", trace=load_trace(MXNET, hours=_MXNET_HOURS), fleet=load_with(EXAMPLE_FLEET, []), hours=_MXNET_HOURS)
    for name, weeks in (("linkerd_gha", 4), ("mxnet_jenkins", 3)):
        for week in range(weeks):
            lead_in = _WEEK_HOURS if week else 0.0
            skipped = week * _WEEK_HOURS - lead_in
            trace = load_trace(MXNET.parent / f"{name}.csv.gz", hours=_WEEK_HOURS, skip_hours=skipped, lead_in_hours=lead_in)
            yield Load(name=f"{name}, week {week + 1}", trace=trace, fleet=fleet_for(trace), hours=_WEEK_HOURS)


def _total_usd(load: Load, part: str) -> float:
    settings = {**FIXED, WITHOUT: part} if part else FIXED
    total: float = play(Experiment(trace=load.trace, fleet=load.fleet, hours=load.hours, settings=settings, seed=load.seed))["total_usd"]
    return total


def _row(totals: list[float]) -> Iterator[str]:
    yield f"${totals[0]:,.0f}"
    for total in totals[1:]:
        yield f"{total / totals[0] - 1:+.1%}"
