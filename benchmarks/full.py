"""Fleets that are full: ours where a limit on all agents lets jobs wait, and the best of the rivals."""

from collections.abc import Iterator

from autoscaler.config import FleetSettings, check
from autoscaler_workbench.cli.assignments import load_with
from autoscaler_workbench.simulate.fleets import EXAMPLE_FLEET
from autoscaler_workbench.simulate.traces import MXNET, load_trace
from benchmarks.against_rivals import Load, against_rivals, in_some_worlds
from benchmarks.figures import Figures

_SKIP_HOURS, _HOURS = 40.0, 48.0  # the two busiest days
_LIMITS = (30, 24, 20, 18, 16)


def measure() -> Iterator[Figures]:
    """Play the MXNet CI's busiest days with ever fewer agents allowed."""
    yield against_rivals(
        "Full fleets",
        "Two days of the MXNet CI on the example's fleet, whose pools may together have no more agents than this (and need not have any)",
        in_some_worlds(loads()),
    )


def loads() -> list[Load]:
    """The same two days under each limit."""
    return [_load(limit) for limit in _LIMITS]


def _load(limit: int) -> Load:
    trace = load_trace(MXNET, hours=_HOURS, skip_hours=_SKIP_HOURS)
    return Load(name=f"{limit} agents", trace=trace, fleet=_fleet(limit), hours=_HOURS)


def _fleet(limit: int) -> FleetSettings:
    raw = load_with(EXAMPLE_FLEET, []).model_dump(mode="json", exclude_unset=True)
    raw["limits"]["max_agents"] = limit
    for pool in raw["pools"].values():
        pool |= {"max_agents": min(pool["max_agents"], limit), "min_agents": 0, "warm_executors": 0}
    return check(raw, "a fleet that is full")
