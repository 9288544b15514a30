"""The demand of a trace if no job waits: for the clairvoyant, for sizing a static fleet, and for the lower bounds."""

from collections import defaultdict
from dataclasses import dataclass

from autoscaler_workbench.simulate.result import StepCurve
from autoscaler_workbench.simulate.traces import Row, Trace, stages_in_order


@dataclass(frozen=True, slots=True, kw_only=True)
class PerfectForecast:
    """Curves by pool, and the seconds of work in each."""

    curves: dict[str, StepCurve]
    work_seconds: dict[str, float]

    def peak(self, pool: str) -> float:
        """The most builds at once."""
        return max(self.curves[pool].counts, default=0) if pool in self.curves else 0


def spells(times: list[float], agents: list[int], number: int) -> list[tuple[float, float]]:
    """The spans in which at least this many agents are needed; a curve ends at none."""
    found: list[tuple[float, float]] = []
    began: float | None = None
    for at, needed in zip(times, agents, strict=True):
        if needed >= number and began is None:
            began = at
        elif needed < number and began is not None:
            found.append((began, at))
            began = None
    return found


def forecast_trace(trace: Trace, home_of: dict[str | None, str | None]) -> PerfectForecast:
    """Play a trace without waiting. ``home_of``: the pool of each label; None: no pool serves it."""
    spans: dict[str, list[tuple[float, float | None, float]]] = defaultdict(list)
    work: dict[str, float] = defaultdict(float)
    for row, begin in _begins(trace):
        pool = home_of[row.label]
        if pool is not None:
            spans[pool].append((begin, begin + row.duration_seconds, 1))
            work[pool] += row.duration_seconds
    return PerfectForecast(curves={pool: StepCurve.of(of_pool) for pool, of_pool in spans.items()}, work_seconds=dict(work))


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
