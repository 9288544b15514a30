"""The least a trace can cost under any policy if no job waits: perfectly packed, without and with boot times."""

from itertools import pairwise
from math import ceil
from typing import NamedTuple

from autoscaler.domain.facts.fleet import Fleet, Pool
from autoscaler.domain.facts.metering import MINIMUM_BILLED_SECONDS
from autoscaler_workbench.experiment.policy.perfect_forecast import PerfectForecast, spells
from autoscaler_workbench.fakes.world.physics import CALM
from autoscaler_workbench.simulate.result import StepCurve

# The share of a boot that the usual start takes.
_START_SHARE = (CALM.start_from + CALM.start_to) / 2


class LowerBounds(NamedTuple):
    """Dollars. ``work``: every paid executor is busy. ``packed``: at each moment no more agents than their builds fill.

    ``booted``: as packed, and each agent boots before it is needed, or idles where that is shorter. ``stopped``: it may also stop
    meanwhile, which costs its disk and a start.
    """

    work_usd: float
    packed_usd: float
    booted_usd: float
    stopped_usd: float


def lower_bounds(forecast: PerfectForecast, fleet: Fleet) -> dict[str, float]:
    """The bounds of all pools together."""
    found = [LowerBounds(0.0, 0.0, 0.0, 0.0)]
    for name, curve in forecast.curves.items():
        pool = fleet.pools[name]
        found.append(pool_lower_bounds(curve, forecast.work_seconds[name], pool))
    return {name: round(sum(usd), 2) for name, usd in zip(LowerBounds._fields, zip(*found, strict=True), strict=True)}


def pool_lower_bounds(curve: StepCurve, work_seconds: float, pool: Pool) -> LowerBounds:
    """The bounds of one pool, from how many builds run at once."""
    offering, boot = pool.offerings[0], pool.boot_seconds
    start = max(MINIMUM_BILLED_SECONDS, _START_SHARE * boot)
    disk = offering.volume_usd_per_hour / offering.usd_per_hour  # a second of it, in seconds of the machine
    agents = [ceil(count / pool.executors) for count in curve.counts]
    packed = booted = stopped = 0.0
    for number in range(1, max(agents, default=0) + 1):
        needed = spells(curve.times, agents, number)
        busy = sum(end - begin for begin, end in needed)
        gaps = [later[0] - earlier[1] for earlier, later in pairwise(needed)]
        packed += busy
        booted += busy + boot + sum(min(gap, boot) for gap in gaps)
        stopped += busy + boot + sum(min(gap, boot, start + disk * gap) for gap in gaps)
    usd_per_second = offering.usd_per_hour / 3600.0
    return LowerBounds(*(seconds * usd_per_second for seconds in (work_seconds / pool.executors, packed, booted, stopped)))
