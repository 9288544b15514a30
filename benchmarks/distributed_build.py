"""A build that is spread over instances: a serial head, parallel tasks, and a shared artifact cache. Fitted to what Baserock measured.

The head runs on one executor, whatever else is there; the tasks share all executors; and where there is more than one instance, what was
built goes through the cache before everything is done. All three are shares of what one instance takes for the whole.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from autoscaler_workbench.simulate.traces import Row, Trace

INSTANCES, JOBS = 6, 10  # what Baserock had chosen "on a hunch"
_TASKS = 240  # fine enough that 6 instances of 10 end together


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What Baserock measured, in seconds: on one instance, on six, and when six had the result ready though not yet stored."""

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
    """Shares of the time on one instance: the head, and storing in the cache."""

    head: float
    cache: float

    def seconds(self, scenario: Scenario, instances: int) -> float:
        """How long a scenario takes on so many instances."""
        stored = self.cache if instances > 1 else 0.0
        return scenario.single * (self.head + (1.0 - self.head) / instances + stored)


def cache_share(scenarios: tuple[Scenario, ...] = BASEROCK) -> float:
    """From a scenario that tells when its result was ready: what came after it."""
    [told] = [scenario for scenario in scenarios if scenario.ready is not None]
    return (told.six - (told.ready or 0.0)) / told.single


def fit(scenario: Scenario, cache: float) -> Model:
    """The head that makes the model exact for one scenario."""
    rest = scenario.six / scenario.single - cache - 1.0 / INSTANCES
    return Model(head=rest / (1.0 - 1.0 / INSTANCES), cache=cache)


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
