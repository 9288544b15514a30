"""Stages of pipelines: a run in one stage announces the next one, as its project's earlier runs have shown.

A stage is what a run has in the queue and on executors at once; when most of what it has is new, that is its next stage. Of every
project and stage it is learned how long it takes, what comes then, in which pools, and how often nothing does.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import fmean, median

from autoscaler.domain.facts.memory import Learned, RunSeen, StageSeen
from autoscaler.domain.facts.runs import job_name_of
from autoscaler.domain.facts.snapshot import LOOK_GAP_SECONDS
from autoscaler.domain.forecast.prelaunch import AgentCosts, ArrivalForecast

Worth = Callable[[ArrivalForecast, AgentCosts, int], bool]  # whether it is time, and an agent pays, for so many jobs
_STAGES_TO_TRUST = 3
_STAGES_AHEAD = 2
_SAMPLES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """The present items and builds of one run, by id and key, each with its pool."""

    job: str
    items: Mapping[int, str]
    builds: Mapping[str, str]


def learn_stages(before: Learned, present: Mapping[str, Present], now: float) -> tuple[dict[str, RunSeen], dict[str, StageSeen]]:
    """Follow every run for one look; return the runs as they are now, and the updated stages."""
    runs: dict[str, RunSeen] = {}
    stages = dict(before.stages)
    for run, has in present.items():
        known = before.runs.get(run)
        if known is None:
            runs[run] = _begin(has, project_of(has.job), now)
        elif has.builds == known.builds and has.items.keys() == set(known.items):
            runs[run] = known if known.left_at is None else replace(known, left_at=None)
        elif came := _next_stage(known, has):
            _note(stages, known, now, came)
            runs[run] = _begin(has, known.project, now)
        else:
            runs[run] = replace(known, items=tuple(has.items), builds=dict(has.builds), left_at=None)
    for run, known in before.runs.items():
        if run not in present:
            left_at = before.seen_at if known.left_at is None else known.left_at
            if now - left_at <= LOOK_GAP_SECONDS:
                runs[run] = replace(known, left_at=left_at)  # between two stages, perhaps
            else:
                _note(stages, known, left_at, Counter())
    return runs, stages


def project_of(job: str) -> str:
    """Name the project of a job: the folder of a branch or pull request, else the job itself."""
    return job.rpartition("/")[0] or job


def due(
    learned: Learned, pools: Mapping[str, AgentCosts], now: float, is_worth: Worth, declined: Collection[tuple[str, str]] = ()
) -> Counter[str]:
    """Count the executors worth having now for coming stages, by pool: another look later would be too late.

    ``declined``: jobs that are no demand for a pool, with the pool.
    """
    counts: Counter[str] = Counter()
    for path, run in learned.runs.items():
        if needed := _due_of(learned, run, pools, now, is_worth):
            own = Counter(run.builds.values())  # these will have ended by then
            for name, count in needed.items():
                if not (declined and (job_name_of(path), name) in declined):
                    counts[name] += max(0, count - own[name])
    return counts


def _due_of(learned: Learned, run: RunSeen, pools: Mapping[str, AgentCosts], now: float, is_worth: Worth) -> dict[str, int]:
    """Return what one run will need: its next stage, and the one after it where that comes as soon."""
    needed: dict[str, int] = {}
    stage, elapsed, ahead, share = run.stage, now - run.since_at, 0.0, 1.0
    for _ in range(_STAGES_AHEAD):
        history = learned.stages.get(_key(run.project, stage))
        next_one = _next_of(history, elapsed) if history else None
        if next_one is None:
            break
        arrival, come = next_one
        arrival = replace(arrival, soon=ahead + arrival.soon, late=ahead + arrival.late, share=share * arrival.share)
        for name, count in come.items():
            if name in pools and is_worth(arrival, pools[name], count):
                needed[name] = max(needed.get(name, 0), count)
        stage, elapsed, ahead, share = stage_name(come), 0.0, arrival.soon, arrival.share
    return needed


def _next_of(history: StageSeen, elapsed: float) -> tuple[ArrivalForecast, Counter[str]] | None:
    """Return when the next stage comes by a stage's history, and its executors by pool."""
    follow = [(seconds - elapsed, counts) for seconds, counts in history.followed if seconds > elapsed]
    end = [seconds - elapsed for seconds in history.ended if seconds > elapsed]
    if len(follow) < _STAGES_TO_TRUST:
        return None
    ahead = sorted(seconds for seconds, _ in follow)
    names = sorted({name for _, counts in follow for name in counts})
    counts = Counter({name: int(median(counts.get(name, 0) for _, counts in follow)) for name in names})
    arrival = ArrivalForecast(
        soon=ahead[len(ahead) // 4],
        late=fmean(ahead),
        ends=fmean(end) if end else 0.0,
        share=len(follow) / (len(follow) + len(end)),
    )
    return arrival, +counts


def stage_name(counts: Mapping[str, int]) -> str:
    """Name a stage by roughly how much it has in which pools: counting stages fails when a look misses one."""
    return " ".join(f"{pool}*{2 ** count.bit_length() // 2}" for pool, count in sorted(counts.items()))


def _begin(has: Present, project: str, now: float) -> RunSeen:
    stage = stage_name(Counter((*has.items.values(), *has.builds.values())))
    return RunSeen(project=project, stage=stage, since_at=now, items=tuple(has.items), builds=dict(has.builds))


def _next_stage(known: RunSeen, has: Present) -> Counter[str]:
    """Return all that the run has, by pool, if most of it has come since the last look: its next stage.

    Jenkins names a stage's build by its run and its executor, so what the next stage runs on the same executor looks like what is left.
    """
    fresh_items = sum(item not in known.items for item in has.items)
    fresh_builds = sum(build not in known.builds for build in has.builds)
    begun = min(fresh_builds, sum(item not in has.items for item in known.items))  # an item that is gone may be a build that is new
    left = len(has.items) + len(has.builds) - fresh_items - fresh_builds + begun
    return Counter((*has.items.values(), *has.builds.values())) if fresh_items + fresh_builds - begun > left else Counter()


def _note(stages: dict[str, StageSeen], run: RunSeen, now: float, came: Mapping[str, int]) -> None:
    key, seconds = _key(run.project, run.stage), round(now - run.since_at, 1)
    known = stages.pop(key, StageSeen())
    if came:
        known = replace(known, followed=(*known.followed, (seconds, dict(came)))[-_SAMPLES:])
    else:
        known = replace(known, ended=(*known.ended, seconds)[-_SAMPLES:])
    stages[key] = known


def _key(project: str, stage: str) -> str:
    return f"{project}\n{stage}"


def presents(items: Iterable[tuple[str, str, int, str]], builds: Iterable[tuple[str, str, str, str]]) -> dict[str, Present]:
    """Gather by run. ``items``: (run, job, id, pool); ``builds``: (run, job, key, pool)."""
    jobs: dict[str, str] = {}
    of_items: dict[str, dict[int, str]] = {}
    of_builds: dict[str, dict[str, str]] = {}
    for run, job, item, pool in items:
        jobs[run] = job
        of_items.setdefault(run, {})[item] = pool
    for run, job, build, pool in builds:
        jobs[run] = job
        of_builds.setdefault(run, {})[build] = pool
    return {run: Present(job=job, items=of_items.get(run, {}), builds=of_builds.get(run, {})) for run, job in jobs.items()}
