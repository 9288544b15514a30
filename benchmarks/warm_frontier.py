"""Dollars against waiting, with and without a warm pool, at several prices of an hour that a job waits."""

from collections.abc import Iterator, Mapping
from typing import Any

from joblib import Parallel, delayed

from autoscaler_workbench.experiment.compare import FIXED, OUR_KNOB
from autoscaler_workbench.experiment.experiment import Experiment, play
from benchmarks.against_rivals import Load
from benchmarks.figures import Figures
from benchmarks.parts import recorded

_KNOB, _VALUES = OUR_KNOB[0], tuple(sorted((*OUR_KNOB[1], 20.0)))
_WEEKS = ("mxnet_stages", "linkerd_gha, week 2", "mxnet_jenkins, week 2")


def measure() -> Iterator[Figures]:
    """Play one week of each recorded CI at each price, with and without."""
    loads = [load for load in recorded() if load.name in _WEEKS]
    asked = [(load, usd, warm) for load in loads for usd in _VALUES for warm in (False, True)]
    played = Parallel(n_jobs=-1)(delayed(_play)(*what) for what in asked)
    results = {(load.name, usd, warm): result for (load, usd, warm), result in zip(asked, played, strict=True)}
    yield Figures(
        "Stopped agents: dollars against waiting",
        f"The bill (with stopped disks) and the p95 wait at several values of {_KNOB}, one run each; a start takes 0.15 to 0.5 of a boot.",
        ("load", "an hour of waiting", "bill without", "p95", "bill with", "p95 with"),
        tuple(
            (load.name, f"${usd:g}", *_cells(results[load.name, usd, False]), *_cells(results[load.name, usd, True]))
            for load in loads
            for usd in _VALUES
        ),
    )


def _play(load: Load, usd: float, warm: bool) -> Mapping[str, Any]:  # noqa: FBT001 - with or without
    settings = {**FIXED, _KNOB: usd, **({"warm_pool": {"instance_stores": True}} if warm else {})}
    return play(Experiment(trace=load.trace, fleet=load.fleet, hours=load.hours, settings=settings, seed=load.seed))


def _cells(result: Mapping[str, Any]) -> tuple[str, str]:
    return f"${result['usd']:,.0f}", f"{result['wait_p95_s']:.0f} s"
