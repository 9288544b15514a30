"""A build of 600 small tasks by real processes over one cache: how many instances with how many jobs, and what killed builders cost."""

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory

from autoscaler_workbench.shared_build.gang import Gang, Outcome, build, join_late
from autoscaler_workbench.shared_build.graph import SHAPES, TASKS, artifacts, digest
from autoscaler_workbench.shared_build.order import Order
from autoscaler_workbench.shared_build.predict import Pace, pace_of, predict
from benchmarks.baserock import INSTANCES, Scenario, fit
from benchmarks.figures import Figures

_SIZES = tuple(product((1, 2, 3, 4, 6), (1, 2, 3, 4)))
_RUNS = 3
_JOBS = 2  # where only instances differ
_WITHIN = 1.1  # of the fastest: nobody notices
_MEMORY = Path("/dev/shm")  # noqa: S108 - so that the wire is the limit, and not this machine's disk
_TROUBLES = ((2.0, 0), (2.0, 5), (2.0, 12), (0.0, 0), (0.0, 5))


def measure() -> Iterator[Figures]:
    """Run it at all sizes, in all shapes, and with builders that are killed."""
    paces = {shape: _pace(Order(shape=shape)) for shape in SHAPES}
    runs: dict[tuple[int, int], list[Outcome]] = {size: [] for size in _SIZES}
    for seed, (instances, jobs) in product(range(_RUNS), _SIZES):
        runs[instances, jobs].append(_run(Order(), Gang(instances=instances, jobs=jobs, seed=seed)))
    yield _sizes(runs, paces[Order().shape])
    yield _reach(paces)
    yield _killed()


def _sizes(runs: dict[tuple[int, int], list[Outcome]], pace: Pace) -> Figures:
    took = {size: median(run.seconds for run in some) for size, some in runs.items()}
    paid = {size: median(run.instance_seconds for run in some) for size, some in runs.items()}
    predicted = {size: _predicted(Order(), pace, *size) for size in runs}
    fastest = min(took, key=took.__getitem__)
    sweet = min((size for size in took if took[size] <= _WITHIN * took[fastest]), key=paid.__getitem__)
    return Figures(
        "A build over one cache: instances times jobs",
        f"{TASKS} tasks ({Order().shape}), medians of {_RUNS} runs. Builders are processes on this machine; of a task 20 to 60 ms are "
        "waiting, and one or two computing, so that more slots than cores mean something. One wire to the cache carries 32 MiB a second, "
        "one artifact at a time, for all: each is published once, and fetched once by each other instance that needs it. Predicted: the "
        "graph, played with the times of one run on one slot. Busy: the share of the paid slots that was building. "
        f"Fastest: {fastest[0]} x {fastest[1]}. Cheapest in instance-seconds of those that take at most a tenth longer: "
        f"{sweet[0]} x {sweet[1]}, which costs {paid[sweet] / paid[INSTANCES, 4]:.0%} of {INSTANCES} x 4.",
        ("instances x jobs", "seconds", "predicted", "missed by", "instance-seconds", "busy", "built twice"),
        tuple(
            (
                f"{instances} x {jobs}",
                f"{took[instances, jobs]:.1f}",
                f"{predicted[instances, jobs]:.1f}",
                f"{predicted[instances, jobs] / took[instances, jobs] - 1.0:+.0%}",
                f"{paid[instances, jobs]:.1f}",
                f"{median(_busy(run, jobs) for run in runs[instances, jobs]):.0%}",
                f"{sum(len(run.duplicates) for run in runs[instances, jobs])}",
            )
            for instances, jobs in runs
        ),
    )


def _reach(paces: dict[str, Pace]) -> Figures:
    measured = [Scenario(name=shape, single=_seconds(shape, 1, 1), six=_seconds(shape, INSTANCES, _RUNS)) for shape in SHAPES]
    amdahl = [(f"Amdahl's law, fitted on {fitted.name}", fit(fitted, 0.0)) for fitted in measured]
    played = [_predicted(Order(shape=one.name), paces[one.name], INSTANCES, _JOBS) / one.six - 1.0 for one in measured]
    return Figures(
        "A build over one cache: how far predictions reach",
        f"Three graphs of {TASKS} tasks with as much work, whose longest paths differ. Six instances with {_JOBS} jobs each: the predicted "
        "time less the measured one. Amdahl's law knows one number of a build, fitted on one instance and on six. The last row knows the "
        "graph and how long each task takes, from one run on one slot, and the wire; nothing is fitted.",
        ("predicted by", *(f"{one.name} ({one.single:.1f} s, {one.six:.1f} s)" for one in measured)),
        (
            *((name, *(f"{model.miss(one):+.0%}" for one in measured)) for name, model in amdahl),
            ("the graph, played", *(f"{miss:+.0%}" for miss in played)),
        ),
    )


def _killed() -> Figures:
    whole = digest(artifacts(Order().graph()))
    rows = []
    for lease, kills in _TROUBLES:
        gangs = [Gang(instances=INSTANCES, jobs=_JOBS, kills=kills, seed=seed) for seed in range(_RUNS)]
        runs = [_run(Order(lease_seconds=lease), gang) for gang in gangs]
        rows.append((f"{lease:g} s" if lease else "none", f"{kills}", *_trouble(runs, whole)))
    return Figures(
        "A build over one cache: builders killed",
        f"{INSTANCES} x {_JOBS}, {_RUNS} runs each; SIGKILL at random points of the build, and a new builder for each. Lost: tasks without "
        "an artifact, or with other bytes than one process comes to. Built twice: of all tasks. Claims: how long a task is "
        "left to whoever claimed it; without any, only the random order keeps builders apart.",
        ("claims", "kills a run", "seconds", "lost", "built twice", "claims taken over a run"),
        tuple(rows),
    )


def _trouble(runs: Sequence[Outcome], whole: str) -> tuple[str, ...]:
    lost = sum(TASKS - run.published if run.digest == whole else TASKS for run in runs)
    twice = sum(len(run.duplicates) for run in runs) / TASKS / len(runs)
    taken_over = sum(len(run.taken_over) for run in runs) / len(runs)
    return f"{median(run.seconds for run in runs):.1f}", f"{lost}", f"{twice:.1%}", f"{taken_over:.1f}"


def _run(order: Order, gang: Gang) -> Outcome:
    with TemporaryDirectory(dir=_MEMORY if _MEMORY.exists() else None) as folder:
        return build(order, gang, Path(folder) / "build")


def _pace(order: Order) -> Pace:
    with TemporaryDirectory(dir=_MEMORY if _MEMORY.exists() else None) as folder:
        single = build(order, Gang(instances=1, jobs=1), Path(folder) / "build")
        return pace_of(order, single, median(join_late(Path(folder) / "build") for _ in range(_RUNS)))


def _seconds(shape: str, instances: int, runs: int) -> float:
    return median(_run(Order(shape=shape), Gang(instances=instances, jobs=_JOBS, seed=seed)).seconds for seed in range(runs))


def _predicted(order: Order, pace: Pace, instances: int, jobs: int) -> float:
    chances = [Random(seed) for seed in range(_RUNS)]  # noqa: S311
    return median(predict(order.graph(), pace, instances=instances, jobs=jobs, random=chance) for chance in chances)


def _busy(run: Outcome, jobs: int) -> float:
    return sum(built.build_seconds for built in run.built) / (run.instance_seconds * jobs)
