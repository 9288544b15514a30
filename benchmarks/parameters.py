"""Made-up loads of jobs with parameters: of some the duration depends on one, of others it does not."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import exp
from random import Random

from autoscaler.domain.facts.job_settings import JobParameters
from autoscaler_workbench.simulate.traces import Row, Trace

_START, _DAY = 1_767_225_600.0, 86_400.0  # 2026-01-01
_DAYS = 7
_JOBS, _BUILDS_A_DAY = 4, 12
_MEDIANS = {"quick": 240.0, "full": 900.0, "sanitizers": 2700.0}
_COMMITS = 10_000  # of which hardly any is built twice
_SIGMA = 0.15  # of the logarithm of a duration
MADE_UP = (
    f"{_JOBS} freestyle jobs, {_BUILDS_A_DAY} builds of each a day for {_DAYS} days, at random times, on one pool. SUITE is drawn from "
    f"{len(_MEDIANS)} values. Depends: their medians are 4, 15 and 45 min, times a log-normal factor (sigma {_SIGMA}). Nothing: each build "
    "takes 15 min times that factor, whatever its SUITE. Both: two jobs of each kind. Unique: as nothing, but the parameter has another "
    "value in nearly every build, as a commit has"
)


@dataclass(frozen=True, slots=True)
class MadeUp:
    """A load, and the key that tells its builds apart."""

    trace: Trace
    told_apart: JobParameters
    hours: float = _DAYS * 24.0


def made_up_loads() -> Iterator[MadeUp]:
    """Return a load of each kind; the same in each run."""
    key = JobParameters(by_pattern=(("suite-*", ("SUITE",)),))
    for name, depend in (("depends", _JOBS), ("nothing", 0), ("both", _JOBS // 2), ("unique", 0)):
        chance = Random(name)  # noqa: S311 - a made-up load
        values = tuple(map(str, range(_COMMITS))) if name == "unique" else tuple(_MEDIANS)
        rows = [row for number in range(_JOBS) for row in _rows(chance, f"suite-{number}", values, depends=number < depend)]
        rows.sort(key=lambda row: row.queued_at)
        yield MadeUp(Trace(name=name, start_at=_START, judged_at=_START, rows=tuple(rows), dropped=0), key)


def _rows(chance: Random, job: str, values: tuple[str, ...], *, depends: bool) -> Iterator[Row]:
    for _ in range(_BUILDS_A_DAY * _DAYS):
        suite = chance.choice(values)
        median = _MEDIANS[suite] if depends else _MEDIANS["full"]
        yield Row(
            queued_at=_START + chance.uniform(0.0, _DAYS * _DAY),
            duration_seconds=median * exp(chance.gauss(0.0, _SIGMA)),
            label="cpu",
            job=job,
            run="",
            stage="",
            depends_on="",
            parameters=(("SUITE", suite),),
        )
