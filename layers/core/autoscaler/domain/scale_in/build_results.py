"""Results of builds that ran in the last look and are gone now: by pool, and failures in a row by node."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from autoscaler.domain.facts.blocks import BlockEnd, GoneBlock
from autoscaler.domain.facts.memory import Learned, Sighting
from autoscaler.domain.facts.run_answers import BuildResult, CountedEnds
from autoscaler.domain.facts.snapshot import ControllerView
from autoscaler.domain.facts.streaks import FailedRun, PoolResults, Streak

# How builds ended is asked for no longer than this a look: a slow controller must not keep it from saving what it saw, or the next look
# would ask for the same again.
RESULTS_SECONDS = 10.0
# One request each; what ends beyond that in one look stays unknown.
_ASKED_AT_ONCE = 50
_NAMED = 20
DAY_SECONDS = 86_400.0
# Results of a pool that are remembered, before older ones fade.
_MOST_COUNTED, _FADES = 200.0, 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Results of builds that ended since the last look."""

    succeeded: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A build, or a node block of a pipeline, and what its end says of its node; None: nothing."""

    node: str
    pool: str
    job: str
    run: str
    since_at: float
    result: BuildResult | None
    is_block: bool = False


def gone_since(before: Learned, view: ControllerView) -> list[Sighting]:
    """List the builds that ran in the last look and are gone, up to the number asked about; none of an incomplete view.

    Without node blocks of pipelines, whose ends stand in the graphs of their runs (`situation.node_blocks`).
    """
    return [sighting for key, sighting in _gone(before, view).items() if key not in before.blocks.running][:_ASKED_AT_ONCE]


def _gone(before: Learned, view: ControllerView) -> dict[str, Sighting]:
    if not view.complete:
        return {}
    running = {build.key for node in view.nodes for build in node.builds}
    return {key: sighting for key, sighting in before.running.items() if key not in running and sighting.run and sighting.node}


def count_ends(before: Learned, view: ControllerView, tallies: Mapping[str, Tally], now: float) -> CountedEnds:
    """Carry on the day's count of builds that left their agents, and of those whose result was counted."""
    ended, counted = len(_gone(before, view)), sum(tally_of_pool.succeeded + tally_of_pool.failed for tally_of_pool in tallies.values())
    if not (ended or counted):
        return before.ends
    today = before.ends if before.ends.day_at == midnight_before(now) else CountedEnds(day_at=midnight_before(now))
    return replace(today, ended=today.ended + ended, counted=today.counted + counted)


def midnight_before(now: float) -> float:
    """Return when the day began, in UTC."""
    return now - now % DAY_SECONDS


def ended_on(
    gone: Iterable[Sighting], results: Mapping[str, BuildResult], blocks: Iterable[tuple[GoneBlock, BlockEnd]]
) -> tuple[Ended, ...]:
    """Gather what ended, what began first first. ``results``: of builds, by run, without unknown ones."""
    builds = [
        Ended(node=build.node, pool=build.pool, job=build.job, run=build.run, since_at=build.since_at, result=results.get(build.run))
        for build in gone
    ]
    of_runs = [
        Ended(node=block.node, pool=block.pool, job=block.job, run=block.run, since_at=block.since_at, result=end.result, is_block=True)
        for block, end in blocks
    ]
    return tuple(sorted((*builds, *of_runs), key=lambda end: end.since_at))


def tally(ended: Iterable[Ended]) -> dict[str, Tally]:
    """Count results by pool."""
    counts: dict[str, Tally] = {}
    for end in ended:
        if end.result is not None:
            known = counts.get(end.pool, Tally())
            counts[end.pool] = Tally(
                succeeded=known.succeeded + (end.result is BuildResult.SUCCEEDED), failed=known.failed + (end.result is BuildResult.FAILED)
            )
    return counts


def note_streaks(before: Learned, ended: Collection[Ended], view: ControllerView, now: float) -> tuple[dict[str, Streak], dict[str, float]]:
    """Carry on the failure streaks of present nodes, and when a build last succeeded, by pool."""
    there = {node.name for node in view.nodes}
    streaks = {node: streak for node, streak in before.streaks.items() if node in there}
    succeeded_at = dict(before.succeeded_at)
    for end in ended:
        if end.result is BuildResult.SUCCEEDED:
            streaks.pop(end.node, None)
            succeeded_at[end.pool] = now
        elif end.result is BuildResult.FAILED and end.node in there:
            streaks[end.node] = _longer(streaks.get(end.node), end, now)
    return {node: _compared(node, streak, ended) for node, streak in streaks.items()}, succeeded_at


def note_pool_results(before: Mapping[str, PoolResults], ended: Iterable[Ended]) -> dict[str, PoolResults]:
    """Count how builds of each pool end; old ones fade."""
    counted = dict(before)
    for pool, counts in tally(ended).items():
        known = counted.get(pool, PoolResults())
        fading = _FADES if known.succeeded + known.failed > _MOST_COUNTED else 1.0
        counted[pool] = PoolResults(succeeded=known.succeeded * fading + counts.succeeded, failed=known.failed * fading + counts.failed)
    return counted


def chance_of_streak(streak: Streak, results: PoolResults) -> float:
    """Return how likely these failures are without any fault of their machine, by how often builds of its pool fail elsewhere."""
    failed = max(0.0, results.failed - streak.failures)
    return float(((failed + 1.0) / (failed + results.succeeded + 2.0)) ** streak.independent)


def _longer(streak: Streak | None, failed: Ended, now: float) -> Streak:
    before = streak or Streak(failures=0, since_at=now, jobs=())
    jobs = before.jobs if failed.job in before.jobs else (*before.jobs, failed.job)[-_NAMED:]
    runs = {run.run: run for run in before.runs}
    if failed.is_block:
        known = runs.get(failed.run, FailedRun(run=failed.run, job=failed.job, pool=failed.pool))
        runs[failed.run] = replace(known, failures=known.failures + 1)
    return Streak(failures=before.failures + 1, since_at=before.since_at, jobs=jobs, runs=tuple(runs.values())[-_NAMED:])


def _compared(node: str, streak: Streak, ended: Iterable[Ended]) -> Streak:
    """Note how blocks of the same runs and jobs ended on other nodes in this look."""
    others = [end for end in ended if end.node != node and end.result is not None] if streak.runs else []
    return replace(streak, runs=tuple(_beside(run, others) for run in streak.runs)) if others else streak


def _beside(run: FailedRun, others: Iterable[Ended]) -> FailedRun:
    same = [end for end in others if end.run == run.run]
    well = [end for end in others if end.job == run.job and end.result is BuildResult.SUCCEEDED]
    return replace(
        run,
        succeeded=run.succeeded + sum(end.result is BuildResult.SUCCEEDED and end.pool == run.pool for end in same),
        failed=run.failed + sum(end.result is BuildResult.FAILED for end in same),
        job_succeeded=run.job_succeeded or bool(well),
    )
