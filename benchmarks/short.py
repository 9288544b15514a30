"""Jobs shorter than a boot: ours where every job takes a quarter of its time, and the best of the rivals."""

from collections.abc import Iterator
from dataclasses import replace

from autoscaler_workbench.simulate.fleets import fleet_for
from autoscaler_workbench.simulate.traces import MXNET, Trace, load_trace
from benchmarks.against_rivals import Load, against_rivals, in_some_worlds
from benchmarks.figures import Figures

_WEEK_HOURS = 168.0
_LINKERD = MXNET.parent / "linkerd_gha.csv.gz"
_SHARE = 0.25


def measure() -> Iterator[Figures]:
    """Play linkerd's first weeks so, each from nothing."""
    yield against_rivals(
        "Short jobs",
        f"linkerd's first three weeks, each from nothing, where every job takes {_SHARE:g} of its time: half of them 80 s or less",
        in_some_worlds([_load(week) for week in range(3)]),
    )


def _load(week: int) -> Load:
    trace = _shorter(load_trace(_LINKERD, hours=_WEEK_HOURS, skip_hours=week * _WEEK_HOURS))
    return Load(name=f"week {week + 1}", trace=trace, fleet=fleet_for(trace), hours=_WEEK_HOURS)


def _shorter(trace: Trace) -> Trace:
    return replace(trace, rows=tuple(replace(row, duration_seconds=row.duration_seconds * _SHARE) for row in trace.rows))
