"""Loads that nobody has had, drawn by lot: what ours costs on each, and the best of the rivals."""

from collections.abc import Callable, Iterator, Mapping
from itertools import count as numbers
from math import exp
from random import Random

from autoscaler_workbench.simulate.fleets import fleet_for
from autoscaler_workbench.simulate.traces import Row, Trace
from benchmarks.against_rivals import Load, against_rivals
from benchmarks.figures import Figures

_HOURS, _HOUR, _DAY = 96.0, 3600.0, 86_400.0
_LOTS = (1, 2, 3)
_MONDAY = 1_700_438_400.0  # midnight, UTC


def measure() -> Iterator[Figures]:
    """Play them, from nothing."""
    yield against_rivals("Made-up loads", "Four days each, from nothing, each run with another random load", loads())


def loads() -> list[Load]:
    """All of them, each drawn some times: where a day's few bursts decide, one lot says little."""
    return [_load(name, lot) for name in _LOADS for lot in _LOTS]


def _load(name: str, lot: int) -> Load:
    chance = Random(f"{name}, {lot}")  # noqa: S311 - the same each time
    rows = tuple(sorted(_LOADS[name](chance), key=lambda row: row.queued_at))
    trace = Trace(name=name, start_at=_MONDAY, judged_at=_MONDAY, rows=rows, dropped=0)
    return Load(name=name, trace=trace, fleet=fleet_for(trace), hours=_HOURS, seed=lot)


def _always(_at: float) -> float:
    return 1.0


def _office(at: float) -> float:
    """Nine to six, and a little at night."""
    return 1.0 if 9 <= at % _DAY / _HOUR < 18 else 0.05


def _times(chance: Random, an_hour: float, share: Callable[[float], float] = _always) -> Iterator[float]:
    """Seconds from the beginning, at that rate times ``share``."""
    at = 0.0
    while (at := at + chance.expovariate(an_hour) * _HOUR) < _HOURS * _HOUR:
        if chance.random() < share(at):
            yield at


def _about(chance: Random, median: float, spread: float = 0.5) -> float:
    return median * exp(chance.gauss(0, spread))


def _job(at: float, seconds: float, label: str, job: str, *of_run: str) -> Row:
    run, stage, depends_on = of_run or ("", "", "")
    whole = max(1.0, round(seconds, 1))
    return Row(queued_at=_MONDAY + at, duration_seconds=whole, label=label, job=job, run=run, stage=stage, depends_on=depends_on)


def _steady(an_hour: float, median: float, label: str, share: Callable[[float], float] = _always) -> Callable[[Random], Iterator[Row]]:
    def jobs(chance: Random) -> Iterator[Row]:
        for at in _times(chance, an_hour, share):
            yield _job(at, _about(chance, median), label, f"{label} {chance.randrange(10)}")

    return jobs


def _by_the_clock(_chance: Random) -> Iterator[Row]:
    for hour in range(int(_HOURS)):
        yield from (_job(hour * _HOUR, 600.0, label, label) for label in ("gpu_8", "cpu", "arm", "windows"))


def _nights(chance: Random) -> Iterator[Row]:
    for night in range(4):
        for number in range(50):
            at = night * _DAY + 2 * _HOUR + chance.uniform(0, 30)
            yield _job(at, _about(chance, 1800.0), "gpu" if number % 3 else "cpu", f"nightly {number}")


def _pipelines(chance: Random) -> Iterator[Row]:
    for number, at in enumerate(_times(chance, 2.0, _office)):
        run, width = f"run {number}", 1 + int(chance.expovariate(1 / 6))
        yield _job(at, _about(chance, 30.0), "utility", "sanity", run, "sanity", "")
        for part in range(width):
            label = ("cpu", "gpu", "windows")[part % 3]
            yield _job(at, _about(chance, 900.0), label, f"build {part}", run, "build", "sanity")
            yield _job(at, _about(chance, 1500.0), label, f"test {part}", run, "test", "build")


def _matrices(chance: Random) -> Iterator[Row]:
    for at in _times(chance, 3.0, _office):
        for number in range(1 + int(chance.expovariate(1 / 8))):
            yield _job(at + chance.uniform(0, 5), _about(chance, 420.0), "cpu", f"cell {number}")


def _waves(chance: Random) -> Iterator[Row]:
    for at in _times(chance, 2.0, _office):
        later = at
        for number in numbers():
            yield _job(later, _about(chance, 900.0), "gpu", f"wave {number}")
            later += chance.expovariate(1 / 40.0)
            if chance.random() < 0.15:
                break


def _huge_burst(chance: Random) -> Iterator[Row]:
    yield from _steady(3.0, 300.0, "cpu")(chance)
    for day in range(4):
        at = day * _DAY + chance.uniform(8, 18) * _HOUR
        yield from (_job(at + chance.uniform(0, 60), _about(chance, 1200.0), "cpu", "release") for _ in range(300))


def _hours_and_minutes(chance: Random) -> Iterator[Row]:
    yield from _steady(7.5, 300.0, "gpu")(chance)
    yield from _steady(0.5, 5 * _HOUR, "gpu")(chance)


def _many_labels(chance: Random) -> Iterator[Row]:
    for place in range(8):
        yield from _steady(20.0 / (place + 1) ** 1.5, 400.0, f"pool{place}", _office if place % 2 else _always)(chance)


_LOADS: Mapping[str, Callable[[Random], Iterator[Row]]] = {
    "a job of five minutes an hour": _steady(1.0, 300.0, "cpu"),
    "four kinds of machines, a job on each by the clock": _by_the_clock,
    "fifty jobs at two in the night": _nights,
    "twelve gpu jobs an hour, nine to six": _steady(12.0, 1800.0, "gpu", _office),
    "three windows jobs an hour, nine to six": _steady(3.0, 2400.0, "windows", _office),
    "checks, then builds, then tests": _pipelines,
    "matrices of some eight jobs": _matrices,
    "some seven gpu jobs within minutes": _waves,
    "three jobs an hour, three hundred once a day": _huge_burst,
    "gpu jobs of minutes, and some of hours": _hours_and_minutes,
    "eight pools, the first twenty times as busy as the last": _many_labels,
    "a hundred and fifty jobs of twenty seconds an hour, nine to six": _steady(150.0, 20.0, "cpu", _office),
    "forty jobs an hour, day and night": _steady(40.0, 600.0, "cpu"),
}
