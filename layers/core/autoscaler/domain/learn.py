"""Door 2: everything that is remembered from one look to the next."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from autoscaler.domain.facts.memory import Learned, Memory, Sighting
from autoscaler.domain.facts.metering import HOUR_SECONDS
from autoscaler.domain.facts.plan import BootFailure, Forget, Held, Step
from autoscaler.domain.facts.snapshot import BuildResult
from autoscaler.domain.forecast.durations import job_key, pool_key
from autoscaler.domain.forecast.job_patterns import Arrival, note_arrivals
from autoscaler.domain.forecast.prelaunch import PASS_SECONDS
from autoscaler.domain.forecast.stages import Present, learn_stages, presents
from autoscaler.domain.repair.bring_back import note_owed
from autoscaler.domain.scale_in.build_results import Tally, gone_since, note_streaks, tally
from autoscaler.domain.scale_in.replace import note_kept, note_taken
from autoscaler.domain.situation.breakers import note_failed
from autoscaler.domain.situation.situation import Situation

REQUESTS_REMEMBERED_SECONDS = 86_400.0
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
    noted = note_arrivals(before, arrived, {name: pool.costs for name, pool in situation.pools_of(controller).items()}, now)
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
        followers=noted.followers,
        schedules=noted.schedules,
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


def remember(memory: Memory, situation: Situation, decided: list[Step | Held], failures: Iterable[BootFailure]) -> Memory:
    """Note everything that follows from what ``scale_down`` decided."""
    memory = note_failed(memory, failures, situation.snapshot.template_versions, situation.now)
    memory = note_taken(memory, decided, situation.now)
    memory = note_kept(memory, situation, decided)
    memory = note_owed(memory, situation, decided)
    return _note_gone(memory, situation, decided)


def remember_request(situation: Situation, request_id: str | None) -> Memory:
    """Note that a person's request was done."""
    known = situation.memory.requests
    kept = {key: at for key, at in known.items() if situation.now - at < REQUESTS_REMEMBERED_SECONDS}
    if request_id:
        kept[request_id] = situation.now
    return replace(situation.memory, requests=kept)


def _note_gone(memory: Memory, situation: Situation, decided: list[Step | Held]) -> Memory:
    """Note when agents were launched whose records are closed now, as long as they count in the hour's launch rate."""
    forgotten = {step.instance_id for step in decided if isinstance(step, Forget)}
    gone = {record.instance_id: record.launched_at for record in situation.snapshot.records if record.instance_id in forgotten}
    lately = {instance_id: at for instance_id, at in {**memory.gone, **gone}.items() if situation.now - at < HOUR_SECONDS}
    return replace(memory, gone=lately)
