"""Machines as dear as the waiting that they spare: ours where every job needs one with eight GPUs, and the best of the rivals."""

from collections.abc import Iterator

from autoscaler.config import FleetSettings, check
from autoscaler_workbench.simulate.fleets import fleet_for
from autoscaler_workbench.simulate.traces import MXNET, Trace, load_trace
from benchmarks.against_rivals import Load, against_rivals, in_some_worlds
from benchmarks.figures import Figures

_WEEK_HOURS = 168.0
_LINKERD = MXNET.parent / "linkerd_gha.csv.gz"
_MACHINE = "g6.48xlarge"


def measure() -> Iterator[Figures]:
    """Play linkerd's first weeks on them, each from nothing."""
    weeks = [load_trace(_LINKERD, hours=_WEEK_HOURS, skip_hours=week * _WEEK_HOURS) for week in range(3)]
    yield against_rivals(
        "Dear machines",
        f"linkerd's first three weeks, each from nothing, where every machine is a {_MACHINE} of $13.35 an hour and has so many executors",
        in_some_worlds([_load(number, trace, executors) for executors in (1, 8) for number, trace in enumerate(weeks, start=1)]),
    )


def _load(week: int, trace: Trace, executors: int) -> Load:
    name = f"week {week}, {executors} executor{'s' * (executors > 1)}"
    return Load(name=name, trace=trace, fleet=_dear(trace, executors), hours=_WEEK_HOURS)


def _dear(trace: Trace, executors: int) -> FleetSettings:
    raw = fleet_for(trace).model_dump(mode="json", exclude_unset=True)
    for pool in raw["pools"].values():
        pool |= {"instance_types": [_MACHINE], "executors": executors}
    return check(raw, "a fleet of dear machines")
