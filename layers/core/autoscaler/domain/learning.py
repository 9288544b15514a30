"""Learning from one look to the next: how long builds took, and how long jobs waited for their executor."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from autoscaler.domain.arrivals import Arrival, note_arrivals
from autoscaler.domain.durations import Learned, Sighting, job_key, pool_key
from autoscaler.domain.numbers import PASS_SECONDS
from autoscaler.domain.results import BuildResult, Tally, gone_since, note_streaks, tally
from autoscaler.domain.situation import Situation
from autoscaler.domain.stages import Present, learn_stages, presents

_PER_JOB = 20
_PER_POOL = 200
_JOBS_KEPT = 2000
_STAGES_KEPT = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """What one look taught."""

    learned: Learned
    job_waits: Mapping[str, tuple[float, ...]] = field(default_factory=dict)  # seconds, by pool
    tallies: Mapping[str, Tally] = field(default_factory=dict)  # by pool


def learn(situation: Situation, controller: str, results: Mapping[str, BuildResult]) -> Lesson:
    """Compare this look with the last one; an incomplete view teaches nothing. ``results``: of builds gone since, by run."""
    before = situation.snapshot.learned[controller]
    view = situation.snapshot.controllers[controller]
    if not view.complete:
        return Lesson(learned=before)
    now = situation.now
    builds = {
        build.key: (build, agent.pool.name, agent.node.name)
        for pool in situation.pools_of(controller).values()
        for agent in pool.agents
        if agent.node
        for build in agent.node.builds
    }
    fresh = {
        key: Sighting(job=build.job, pool=pool, since_at=now - (build.elapsed_seconds or 0.0), node=node, run=build.run)
        for key, (build, pool, node) in builds.items()
        if key not in before.running
    }
    running = {key: before.running.get(key) or fresh[key] for key in builds}
    ended = [sighting for key, sighting in before.running.items() if key not in running]
    samples = dict(before.samples)
    # A build ended somewhere between the two looks; the middle is the best guess.
    ended_at = (before.seen_at + now) / 2
    for sighting in ended:
        _add_sample(samples, sighting, max(ended_at - sighting.since_at, 1.0))
    runs, stages = learn_stages(before, _present(situation, controller), now)
    waiting = {f"{want.item.id}\n{want.item.job}": want.item.waiting_seconds for want in situation.demands[controller].wants}
    begun = _begun(fresh, before, waiting)
    unseen = {builds[key][0].run: sighting for key, sighting, waited in begun if waited is None}
    arrived = _arrived(situation, controller, unseen) if before.seen_at else []
    noted = note_arrivals(before, arrived, situation.pools_of(controller), now)
    gone = gone_since(before, view)
    streaks, succeeded_at = note_streaks(before, gone, results, view, now)
    learned = Learned(
        streaks=streaks,
        succeeded_at=succeeded_at,
        runs=runs,
        stages=dict(list(stages.items())[-_STAGES_KEPT:]),
        samples=dict(list(samples.items())[-_JOBS_KEPT:]),
        running=running,
        waiting=waiting,
        arrivals=noted.arrivals,
        sequels=noted.sequels,
        rhythms=noted.rhythms,
        seen_at=now,
        version=before.version,
    )
    waits = _job_waits(begun, min(now - before.seen_at, PASS_SECONDS) / 2) if before.seen_at else {}
    return Lesson(learned=learned, job_waits=waits, tallies=tally(gone, results))


def _present(situation: Situation, controller: str) -> dict[str, Present]:
    """What every run has in the queue and on our executors now."""
    wants = situation.demands[controller].wants
    items = [(want.item.run, want.item.job, want.item.id, want.pools[0].name) for want in wants if want.item.run]
    agents = [agent for pool in situation.pools_of(controller).values() for agent in pool.agents if agent.node]
    builds = [(b.run, b.job, b.key, agent.pool.name) for agent in agents if agent.node for b in agent.node.builds if b.run]
    return presents(items, builds)


def _add_sample(samples: dict[str, tuple[float, ...]], sighting: Sighting, seconds: float) -> None:
    for key, kept in ((job_key(sighting.job, sighting.pool), _PER_JOB), (pool_key(sighting.pool), _PER_POOL)):
        # Popped and put back: the jobs seen last stand last, and are kept.
        samples[key] = (*samples.pop(key, ()), round(seconds, 1))[-kept:]


def _begun(fresh: Mapping[str, Sighting], before: Learned, waiting: Mapping[str, float]) -> list[tuple[str, Sighting, float | None]]:
    """Match each build that began to an item of its job that left the queue: how long that had waited; None: it was never seen waiting."""
    left: dict[str, list[float]] = {}
    for item, waited in before.waiting.items():
        if item not in waiting:
            left.setdefault(item.split("\n", 1)[1], []).append(waited)
    for waits in left.values():
        waits.sort()
    return [(key, sighting, left[sighting.job].pop() if left.get(sighting.job) else None) for key, sighting in fresh.items()]


def _arrived(situation: Situation, controller: str, unseen: Mapping[str, Sighting]) -> list[Arrival]:
    """What was asked for since the last look: new items, and builds that were never seen waiting, by run; of a pipeline its beginning."""
    before, now = situation.snapshot.learned[controller], situation.now
    arrived = {
        run: Arrival(job=sighting.job, pool=sighting.pool, at=sighting.since_at)
        for run, sighting in unseen.items()
        if run not in before.runs
    }
    for want in situation.demands[controller].wants:
        item = want.item
        if f"{item.id}\n{item.job}" not in before.waiting and item.run not in before.runs:
            arrived[item.run or str(item.id)] = Arrival(job=item.job, pool=want.pools[0].name, at=now - item.waiting_seconds)
    return sorted(arrived.values(), key=lambda arrival: arrival.at)


def _job_waits(begun: list[tuple[str, Sighting, float | None]], half_gap: float) -> dict[str, tuple[float, ...]]:
    """How long those waited that began, by pool; one never seen waiting came and went between two looks."""
    found: dict[str, list[float]] = {}
    for _, sighting, waited in begun:
        found.setdefault(sighting.pool, []).append(half_gap + (waited or 0.0))
    return {pool: tuple(waits) for pool, waits in found.items()}
