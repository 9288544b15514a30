"""One policy plays one trace and is measured; world, jobs and the end of the bill are the same for every policy.

The bill ends when the trace is over and its last job is done. Machines that run beyond that are not counted against a policy.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

from autoscaler.config import FleetSettings, check
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.errors import ConfigError
from autoscaler_workbench.experiment.ablation import AblatedState
from autoscaler_workbench.experiment.measures import measure_run
from autoscaler_workbench.experiment.policy.perfect_forecast import PerfectForecast, forecast_trace
from autoscaler_workbench.experiment.policy.rival import Rival
from autoscaler_workbench.experiment.policy.rival_fleet import RivalFleet
from autoscaler_workbench.experiment.rivals import EVERY_RIVAL, RIVALS
from autoscaler_workbench.experiment.timelines import timeline
from autoscaler_workbench.fakes.state import InMemoryState
from autoscaler_workbench.fakes.world.faults import Faults, failing
from autoscaler_workbench.fakes.world.jenkins.builds import Build
from autoscaler_workbench.fakes.world.physics import CALM, Physics
from autoscaler_workbench.fakes.world.world import World, build_world
from autoscaler_workbench.simulate.drive import InProcess, Progress, tick_once
from autoscaler_workbench.simulate.new_fleet import LOOK_EVERY_SECONDS, as_shipped
from autoscaler_workbench.simulate.replay import Replay
from autoscaler_workbench.simulate.traces import Trace

OURS = "autoscaler"
POLICIES = (OURS, *RIVALS)  # what is played where none is named
EVERY_POLICY = (OURS, *EVERY_RIVAL)
# As shipped, by the share of a boot that the start of a stopped agent takes on average; it is drawn between these two.
AS_SHIPPED = "as_shipped"
STARTS: Mapping[float, tuple[float, float]] = {0.33: (0.15, 0.5), 0.6: (0.4, 0.8), 1.0: (0.9, 1.1)}
# How long after the last arrival a job may still begin or end: a policy that leaves jobs behind does not play for ever.
_PATIENCE_SECONDS = 12 * 3600.0
_LOOKS_EVERY_SECONDS = 60.0
_REST_SECONDS = 60.0
# What a rival does not have, ours is not held back by: limits on agents hold for everybody, those by the hour and month for nobody.
_NO_RATES = {"max_launches_per_hour": 100_000, "max_usd_per_hour": 100_000, "max_usd_per_month": 10_000_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A trace, the fleet and policy that play it, settings, and the random seed. ``hours``: without the lead-in."""

    trace: Trace
    fleet: FleetSettings
    hours: float
    policy: str = OURS
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 1
    physics: Physics = CALM


class OurPolicy:
    """The production passes, a look every ``looks_every_seconds``.

    For speed, a look is skipped while nothing has happened since one that went well and did nothing, for up to a minute: changes that
    only time brings about (an agent kept long enough, a job to come) are seen up to a minute late, never early.
    """

    def __init__(self, world: World, fleet: Fleet, looks_every_seconds: float, without: str | None, seed: int) -> None:
        """Take over this world. ``without``: the part of the learning to leave out."""
        self.tick_seconds = looks_every_seconds
        self.failed = 0
        state = AblatedState(part=without) if without else InMemoryState()
        self._faults = Faults(dice=failing(world.physics.failing_calls, seed))
        self._functions = InProcess(world, fleet, state=state, faults=self._faults, look_every_seconds=looks_every_seconds)
        self._timeline = world.timeline
        self._looked_at, self._happened, self._restless = -_REST_SECONDS, 0, False

    def tick(self) -> None:
        """Run the three functions, as the schedule does."""
        rested = self._timeline.now - self._looked_at >= _REST_SECONDS
        if not (rested or self._restless or self._timeline.happened != self._happened):
            return
        self._looked_at, self._happened = self._timeline.now, self._timeline.happened
        progress = Progress()
        tick_once(self._functions, progress)
        self.failed += len(progress.error_texts)
        self._restless = bool(self._faults.seen) or any(report.plan.steps for report in self._functions.reports)
        self._faults.seen.clear()
        self._functions.metrics.published.clear()
        self._functions.reports.clear()
        self._functions.logged.clear()


class RivalPolicy:
    """A rival."""

    def __init__(self, world: World, rival: Rival, forecast: PerfectForecast) -> None:
        """Take over this world."""
        self.tick_seconds = rival.tick_seconds
        self.failed = 0
        self._fleet = RivalFleet(world, forecast)
        self._rival = rival
        rival.begin(self._fleet)

    def tick(self) -> None:
        """Look and act."""
        self._fleet.look()
        self._rival.tick(self._fleet)


def play(experiment: Experiment) -> dict[str, Any]:
    """Play an experiment to its end, and return its row of the results."""
    began = perf_counter()
    fleet = experiment.fleet.domain()
    world = build_world(fleet, start_at=experiment.trace.start_at, seed=experiment.seed, physics=experiment.physics)
    replay = Replay(experiment.trace, world.controllers[fleet.controllers[0]])
    policy = _policy(experiment, world)
    for _ in _ticks(world, replay, policy.tick_seconds, experiment.trace.judged_at + experiment.hours * 3600):
        policy.tick()
    ends = [build.ended_at for build in replay.builds if build.ended_at is not None]
    done_after = round(max(ends, default=experiment.trace.judged_at) - experiment.trace.judged_at, 1)
    told = {
        "trace": experiment.trace.name,
        "policy": experiment.policy,
        "setting": setting_text(experiment.settings),
        "seed": experiment.seed,
    }
    line = timeline(world, replay.builds, experiment.trace.judged_at)
    return (
        told
        | measure_run(world, replay, experiment.trace.judged_at)
        | {"done_after_s": done_after, "failed_passes": policy.failed, "timeline": line, "took_s": round(perf_counter() - began, 1)}
    )


def play_as_shipped(experiment: Experiment, start: float, *, new_fleet: bool) -> dict[str, Any]:
    """Play the settings of a new user; ``start``: of `STARTS`. ``new_fleet``: no operator wrote the file, so it says what `init` would."""
    start_from, start_to = STARTS[start]
    shipped = replace(
        experiment,
        fleet=as_shipped(experiment.fleet) if new_fleet else experiment.fleet,
        settings={"looks_every_seconds": LOOK_EVERY_SECONDS},
        physics=replace(experiment.physics, start_from=start_from, start_to=start_to),
    )
    return play(shipped) | {"setting": setting_text({AS_SHIPPED: start})}


def setting_text(settings: Mapping[str, Any]) -> str:
    """The settings in one word each; "" for the defaults."""
    return " ".join(f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}" for key, value in settings.items())


def _policy(experiment: Experiment, world: World) -> OurPolicy | RivalPolicy:
    if experiment.policy == OURS:
        settings = dict(experiment.settings)
        every = float(settings.pop("looks_every_seconds", _LOOKS_EVERY_SECONDS))
        without = settings.pop("without", None)
        raw = experiment.fleet.model_dump(mode="json", exclude_unset=True)
        raw["defaults"] = raw.get("defaults", {}) | settings
        raw["limits"] |= _NO_RATES
        return OurPolicy(world, check(raw, "--set").domain(), every, without, experiment.seed)
    if experiment.policy not in EVERY_RIVAL:
        raise ConfigError(f"--policy ({experiment.policy}): must be one of {', '.join(EVERY_POLICY)}")
    rival = EVERY_RIVAL[experiment.policy].of(experiment.settings, experiment.seed)
    return RivalPolicy(world, rival, forecast_trace(experiment.trace, homes(experiment.trace, world.fleet)))


def homes(trace: Trace, fleet: Fleet) -> dict[str | None, str | None]:
    """The first pool that serves each label of a trace."""
    world = build_world(fleet, start_at=0.0, seed=0)
    controller = world.controllers[fleet.controllers[0]]
    found = {label: world.home_of(controller.submit("any", label, 0.0)) for label in {row.label for row in trace.rows}}
    return {label: pool.name if pool else None for label, pool in found.items()}


def _ticks(world: World, replay: Replay, every: float, trace_end: float) -> Iterator[None]:
    """Advance tick by tick until all jobs are done, or nothing has moved for too long."""
    start, number, moved_at = world.timeline.now, 0, world.timeline.now
    seen, left = 0, list[Build]()  # builds that were looked at, and those of them that have not ended
    while True:
        world.move_to(start + number * every)
        yield
        number += 1
        if world.timeline.now < trace_end:
            moved_at = world.timeline.now
            continue
        before = len(left), seen
        left = [b for b in (*left, *(b for b in replay.builds[seen:] if world.home_of(b))) if b.ended is None]
        seen = len(replay.builds)
        if (len(left), seen) != before:
            moved_at = world.timeline.now
        if (not left and replay.queued_all) or world.timeline.now - moved_at > _PATIENCE_SECONDS:
            return
