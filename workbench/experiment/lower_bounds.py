"""What a trace must cost, whoever plays it: its work at the cheapest packing, without and with boots, if no job ever waits."""

from dataclasses import asdict, dataclass
from itertools import pairwise
from math import ceil

from autoscaler.domain.facts.fleet import Fleet
from workbench.experiment.policy.perfect_forecast import DemandCurve, PerfectForecast


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Dollars. ``work``: every paid executor is busy. ``packed``: at each moment no more agents than their builds fill.

    ``booted``: as packed, and each agent boots before it is needed, or idles where that is shorter.
    """

    work_usd: float
    packed_usd: float
    booted_usd: float


def bounds_of(forecast: PerfectForecast, fleet: Fleet) -> dict[str, float]:
    """Add the pools up."""
    total = dict.fromkeys(("work_usd", "packed_usd", "booted_usd"), 0.0)
    for name, curve in forecast.curves.items():
        pool = fleet.pools[name]
        usd_per_second = pool.offerings[0].usd_per_hour / 3600.0
        found = pool_lower_bounds(curve, forecast.work_seconds[name], pool.executors, pool.boot_seconds, usd_per_second)
        total = {key: total[key] + usd for key, usd in asdict(found).items()}
    return {key: round(usd, 2) for key, usd in total.items()}


def pool_lower_bounds(curve: DemandCurve, work_seconds: float, executors: int, boot_seconds: float, usd_per_second: float) -> Bounds:
    """The bounds of one pool, from how many builds run at once."""
    agents = [ceil(count / executors) for count in curve.counts]
    packed = booted = 0.0
    for number in range(1, max(agents, default=0) + 1):
        spells = _spells(curve.times, agents, number)
        busy = sum(end - begin for begin, end in spells)
        gaps = [later[0] - earlier[1] for earlier, later in pairwise(spells)]
        packed += busy
        booted += busy + boot_seconds + sum(min(gap, boot_seconds) for gap in gaps)
    return Bounds(
        work_usd=work_seconds / executors * usd_per_second, packed_usd=packed * usd_per_second, booted_usd=booted * usd_per_second
    )


def _spells(times: list[float], agents: list[int], number: int) -> list[tuple[float, float]]:
    """When so many agents are needed at least; the last count of a curve is none."""
    spells: list[tuple[float, float]] = []
    began: float | None = None
    for at, needed in zip(times, agents, strict=True):
        if needed >= number and began is None:
            began = at
        elif needed < number and began is not None:
            spells.append((began, at))
            began = None
    return spells
