"""The least a trace can cost under any policy if no job waits: perfectly packed, without and with boot times."""

from itertools import pairwise
from math import ceil
from typing import NamedTuple

from autoscaler.domain.facts.fleet import Fleet
from autoscaler_workbench.experiment.policy.perfect_forecast import PerfectForecast
from autoscaler_workbench.simulate.result import StepCurve


class LowerBounds(NamedTuple):
    """Dollars. ``work``: every paid executor is busy. ``packed``: at each moment no more agents than their builds fill.

    ``booted``: as packed, and each agent boots before it is needed, or idles where that is shorter.
    """

    work_usd: float
    packed_usd: float
    booted_usd: float


def lower_bounds(forecast: PerfectForecast, fleet: Fleet) -> dict[str, float]:
    """The bounds of all pools together."""
    found = [LowerBounds(0.0, 0.0, 0.0)]
    for name, curve in forecast.curves.items():
        pool = fleet.pools[name]
        usd_per_second = pool.offerings[0].usd_per_hour / 3600.0
        found.append(pool_lower_bounds(curve, forecast.work_seconds[name], pool.executors, pool.boot_seconds, usd_per_second))
    return {name: round(sum(usd), 2) for name, usd in zip(LowerBounds._fields, zip(*found, strict=True), strict=True)}


def pool_lower_bounds(curve: StepCurve, work_seconds: float, executors: int, boot_seconds: float, usd_per_second: float) -> LowerBounds:
    """The bounds of one pool, from how many builds run at once."""
    agents = [ceil(count / executors) for count in curve.counts]
    packed = booted = 0.0
    for number in range(1, max(agents, default=0) + 1):
        spells = _spells(curve.times, agents, number)
        busy = sum(end - begin for begin, end in spells)
        gaps = [later[0] - earlier[1] for earlier, later in pairwise(spells)]
        packed += busy
        booted += busy + boot_seconds + sum(min(gap, boot_seconds) for gap in gaps)
    return LowerBounds(*(seconds * usd_per_second for seconds in (work_seconds / executors, packed, booted)))


def _spells(times: list[float], agents: list[int], number: int) -> list[tuple[float, float]]:
    """The spans in which at least this many agents are needed; a curve ends at none."""
    spells: list[tuple[float, float]] = []
    began: float | None = None
    for at, needed in zip(times, agents, strict=True):
        if needed >= number and began is None:
            began = at
        elif needed < number and began is not None:
            spells.append((began, at))
            began = None
    return spells
