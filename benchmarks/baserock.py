"""Six instances with ten jobs each were "chosen on a hunch": what the same limit costs with an autoscaler, for builds like Baserock's.

The model of such a build: a head on one executor, whatever else is there; tasks that share all executors; storing in the cache where there
is more than one instance. All three are shares of what one instance takes for the whole. ``benchmarks/shared_build.py`` has a real build.
"""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any

from autoscaler.config import check
from autoscaler_workbench.experiment.experiment import OURS, Experiment, play
from autoscaler_workbench.simulate.traces import Row, Trace
from benchmarks.figures import Figures

INSTANCES, JOBS = 6, 10
_TASKS = 240  # fine enough that 6 instances of 10 end together
_EXECUTOR_USD = 0.068  # c6i.4xlarge, ten jobs on sixteen vCPUs: $0.68 an hour, us-west-2
_POLICIES = ("static", OURS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What was measured, in seconds: on one instance, on six, and when six had the result ready though not yet stored."""

    name: str
    single: float
    six: float
    ready: float | None = None


BASEROCK = (
    Scenario(name="scenario 1", single=5197.0, six=3869.0),
    Scenario(name="scenario 2", single=1173.0, six=516.0, ready=428.0),
    Scenario(name="scenario 3", single=10_431.0, six=6414.0),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Shares of the time on one instance: the head, and storing in the cache. Without a cache: Amdahl's law."""

    head: float
    cache: float

    def seconds(self, scenario: Scenario, instances: int) -> float:
        """How long a scenario takes on so many instances."""
        stored = self.cache if instances > 1 else 0.0
        return scenario.single * (self.head + (1.0 - self.head) / instances + stored)

    def miss(self, scenario: Scenario) -> float:
        """By which share it misses what was measured on six instances."""
        return self.seconds(scenario, INSTANCES) / scenario.six - 1.0


def cache_share(scenarios: tuple[Scenario, ...] = BASEROCK) -> float:
    """From a scenario that tells when its result was ready: what came after it."""
    [told] = [scenario for scenario in scenarios if scenario.ready is not None]
    return (told.six - (told.ready or 0.0)) / told.single


def fit(scenario: Scenario, cache: float) -> Model:
    """The head that makes the model exact for one scenario."""
    rest = scenario.six / scenario.single - cache - 1.0 / INSTANCES
    return Model(head=rest / (1.0 - 1.0 / INSTANCES), cache=cache)


def measure() -> Iterator[Figures]:
    """Play each scenario on one static instance, on six, and on a limit of six."""
    models = {scenario: fit(scenario, cache_share()) for scenario in BASEROCK}
    misses = [abs(models[fitted].miss(judged)) for fitted, judged in permutations(BASEROCK, 2)]
    asked = list(product(BASEROCK, (1, INSTANCES), _POLICIES))
    with ProcessPoolExecutor() as pool:
        played = dict(zip(asked, pool.map(as_played, *zip(*asked, strict=True)), strict=True))
    yield Figures(
        "Baserock: six instances of ten jobs",
        f"A serial head, parallel tasks, a shared cache ({cache_share():.1%} of the time on one instance). Each scenario has the head that "
        f"makes the model exact for it: with another one's head it misses by {min(misses):.0%} to {max(misses):.0%}. Minutes until all is "
        "stored, and dollars: static instances, and the same number as a limit for this autoscaler, which boots from nothing in 3 minutes. "
        f"An instance: {JOBS} jobs, {_EXECUTOR_USD * JOBS:.2f} dollars an hour.",
        ("scenario", "head", "one static", "six static", "at most six"),
        tuple(
            (
                scenario.name,
                f"{models[scenario].head:.0%}",
                *(_cell(played[scenario, *what]) for what in ((1, "static"), (INSTANCES, "static"), (INSTANCES, OURS))),
            )
            for scenario in BASEROCK
        ),
    )


def _cell(run: dict[str, Any]) -> str:
    return f"{run['done_after_s'] / 60:.0f} min, ${run['usd']:.2f}"


def as_played(scenario: Scenario, instances: int, policy: str) -> dict[str, Any]:
    """Play it in the simulated world."""
    pool = {
        "labels": ["build"],
        "executors": JOBS,
        "usd_per_hour": _EXECUTOR_USD * JOBS,
        "instance_types": ["c6i.4xlarge"],
        "platform": "linux",
        "launch_template": "build",
        "max_agents": instances,
        "boot_seconds": 180,
    }
    raw = {
        "fleet": "baserock",
        "limits": {"max_agents": instances, "max_launches_per_hour": 100, "max_usd_per_hour": 100, "max_usd_per_month": 10_000},
        "controllers": {"main": {"url": "http://jenkins.invalid/"}},
        "defaults": {"queue_maturity_seconds": 0},
        "pools": {"build": pool},
    }
    trace = as_trace(scenario, fit(scenario, cache_share()), spread=instances > 1)
    settings = {"share": 1.0} if policy == "static" else {"looks_every_seconds": 15.0}
    return play(Experiment(trace=trace, fleet=check(raw, "baserock"), hours=0.02, policy=policy, settings=settings))


def as_trace(scenario: Scenario, model: Model, *, spread: bool) -> Trace:
    """The same as jobs: one, then many at once, then, if it is spread over instances, one that stores."""
    head, work = model.head * scenario.single, (1.0 - model.head) * scenario.single * JOBS
    stages = [("head", "", 1, head), ("tasks", "head", _TASKS, work / _TASKS)]
    if spread:
        stages.append(("cache", "tasks", 1, model.cache * scenario.single))
    return Trace(name=scenario.name, start_at=0.0, judged_at=0.0, rows=tuple(_rows(stages)), dropped=0)


def _rows(stages: list[tuple[str, str, int, float]]) -> Iterator[Row]:
    for stage, after, count, seconds in stages:
        for _ in range(count):
            yield Row(queued_at=0.0, duration_seconds=seconds, label="build", job="system", run="system#1", stage=stage, depends_on=after)
