"""The demand of a trace if no job waits: for the clairvoyant, for sizing a static fleet, and for the lower bounds."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass, field

from workbench.simulate.traces import Row, Trace, stages_in_order


@dataclass(slots=True)
class DemandCurve:
    """How many builds of one pool run at once, as steps: from ``times[i]`` on it is ``counts[i]``."""

    times: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)

    def most(self, begin: float, end: float) -> int:
        """The most at once between two instants; before its first step there are none."""
        running, last = bisect_right(self.times, begin), bisect_left(self.times, end)
        return max(self.counts[max(0, running - 1) : max(running, last)], default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PerfectForecast:
    """Curves by pool, and the seconds of work in each."""

    curves: dict[str, DemandCurve]
    work_seconds: dict[str, float]

    def peak(self, pool: str) -> int:
        """The most builds at once."""
        return max(self.curves[pool].counts, default=0) if pool in self.curves else 0


def forecast_trace(trace: Trace, home_of: dict[str | None, str | None]) -> PerfectForecast:
    """Play a trace without waiting. ``home_of``: the pool of each label; None: no pool serves it."""
    changes: dict[str, list[tuple[float, int]]] = defaultdict(list)
    work: dict[str, float] = defaultdict(float)
    for row, begin in _begins(trace):
        pool = home_of[row.label]
        if pool is not None:
            changes[pool] += [(begin, 1), (begin + row.duration_seconds, -1)]
            work[pool] += row.duration_seconds
    return PerfectForecast(curves={pool: _curve(steps) for pool, steps in changes.items()}, work_seconds=dict(work))


def _begins(trace: Trace) -> list[tuple[Row, float]]:
    """When each row would begin: as it was queued, or when the stage before it has ended."""
    stages: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in trace.rows:
        stages[row.run, row.stage].append(row)
    ends: dict[tuple[str, str], float] = {}

    def begin_of(row: Row) -> float:
        before = (row.run, row.depends_on) if row.run and row.depends_on != row.stage else ("", "")
        return ends.get(before, row.queued_at)

    for stage in stages_in_order(trace.rows):
        ends[stage] = max(begin_of(row) + row.duration_seconds for row in stages[stage])
    return [(row, begin_of(row)) for row in trace.rows]


def _curve(changes: list[tuple[float, int]]) -> DemandCurve:
    curve, running = DemandCurve(), 0
    for at, change in sorted(changes):
        running += change
        if curve.times and curve.times[-1] == at:
            curve.counts[-1] = running
        else:
            curve.times.append(at)
            curve.counts.append(running)
    return curve
