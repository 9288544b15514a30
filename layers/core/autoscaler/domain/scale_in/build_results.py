"""Results of builds that ran in the last look and are gone now: by pool, and failures in a row by node."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from autoscaler.domain.facts.memory import Learned, Sighting
from autoscaler.domain.facts.runs import BlockEnd, BuildResult, CountedEnds, GoneBlock, Item, PoolResults, Streak, job_name_of
from autoscaler.domain.facts.snapshot import ControllerView
from autoscaler.domain.forecast.job_patterns import project_of

# How builds ended is asked for no longer than this a look: a slow controller must not keep it from saving what it saw, or the next look
# would ask for the same again.
RESULTS_SECONDS = 10.0
# One request each; what ends beyond that in one look stays unknown.
_ASKED_AT_ONCE = 50
_NAMED = 20
_FAILING = 500  # jobs
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
    run: str
    since_at: float
    result: BuildResult | None

    @property
    def job(self) -> str:
        """The job whose code ran: the configurations of a matrix are one."""
        return job_name_of(self.run)


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


def count_ends(before: Learned, view: ControllerView, tallies: Mapping[str, Tally], unseen: int, now: float) -> CountedEnds:
    """Carry on the day's count of builds that left their agents, and of those whose result was counted. ``unseen``: by looks."""
    ended, counted = (
        len(_gone(before, view)) + unseen,
        sum(tally_of_pool.succeeded + tally_of_pool.failed for tally_of_pool in tallies.values()),
    )
    if not (ended or counted):
        return before.ends
    today = before.ends if before.ends.day_at == midnight_before(now) else CountedEnds(day_at=midnight_before(now))
    return replace(today, ended=today.ended + ended, counted=today.counted + counted)


def midnight_before(now: float) -> float:
    """Return when the day began, in UTC."""
    return now - now % DAY_SECONDS


def came_and_went(before: Learned, view: ControllerView, answers: Iterable[Item], pools: Mapping[str, str], now: float) -> list[Ended]:
    """List the builds that began and ended on our nodes between two looks. ``answers``: about items that left the queue."""
    seen = {sighting.run for sighting in before.running.values()} | {build.run for node in view.nodes for build in node.builds}
    builds = {item.run: item for item in answers if item.node in pools and item.run not in seen}
    ended = [(run, item.node, item.end) for run, item in builds.items() if item.end]
    return [Ended(node=node, pool=pools[node], run=run, since_at=now, result=end.result) for run, node, end in ended]


def ended_on(
    gone: Iterable[Sighting], results: Mapping[str, BuildResult], blocks: Iterable[tuple[GoneBlock, BlockEnd]]
) -> tuple[Ended, ...]:
    """Gather what ended, what began first first. ``results``: of builds, by run, without unknown ones."""
    builds = [
        Ended(node=build.node, pool=build.pool, run=build.run, since_at=build.since_at, result=results.get(build.run)) for build in gone
    ]
    of_runs = [Ended(node=block.node, pool=block.pool, run=block.run, since_at=block.since_at, result=end.result) for block, end in blocks]
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


def note_streaks(before: Learned, ended: Iterable[Ended], view: ControllerView, now: float) -> Learned:
    """Carry on the failure streaks of present nodes, when builds last succeeded by pool, and which jobs last failed where."""
    streaks, succeeded_at, failing = dict(before.streaks), dict(before.succeeded_at), dict(before.failing)
    for end in ended:
        if end.result is BuildResult.SUCCEEDED:
            streaks.pop(end.node, None)
            succeeded_at[end.pool] = now
            failing.pop(end.job, None)
            streaks = {node: _passed(streak, end) for node, streak in streaks.items()}
        elif end.result is BuildResult.FAILED:
            is_alone = failing.pop(end.job, end.node) == end.node
            failing[end.job] = end.node if is_alone else ""
            if not is_alone:  # its code fails, and no machine
                streaks = {node: _without(streak, end.job) for node, streak in streaks.items()}
            streaks[end.node] = _longer(streaks.get(end.node) or Streak(failures=0, since_at=now, jobs=()), end, is_alone=is_alone)
    there = {node.name for node in view.nodes}
    streaks = {node: streak for node, streak in streaks.items() if node in there}
    return replace(before, streaks=streaks, succeeded_at=succeeded_at, failing=dict(list(failing.items())[-_FAILING:]))


def _without(streak: Streak, failing: str) -> Streak:
    return replace(streak, jobs=tuple(job for job in streak.jobs if job != failing))


def _longer(streak: Streak, failed: Ended, *, is_alone: bool) -> Streak:
    """Add a failure. ``is_alone``: its job failed on no other node since it last succeeded."""
    jobs = (*streak.jobs, failed.job)[-_NAMED:] if is_alone and failed.job not in streak.jobs else streak.jobs
    return replace(streak, failures=streak.failures + 1, jobs=jobs, pool=failed.pool)


def _passed(streak: Streak, succeeded: Ended) -> Streak:
    """Note that something of a project succeeded elsewhere: the failures of its jobs count one by one from now on."""
    project = project_of(succeeded.job)
    is_news = streak.pool == succeeded.pool and project in map(project_of, streak.jobs) and project not in streak.passed
    return replace(streak, passed=(*streak.passed, project)[-_NAMED:]) if is_news else streak


def note_pool_results(before: Mapping[str, PoolResults], ended: Iterable[Ended]) -> dict[str, PoolResults]:
    """Count how builds of each pool end; old ones fade."""
    counted = dict(before)
    for pool, counts in tally(ended).items():
        known = counted.get(pool, PoolResults())
        fading = _FADES if known.succeeded + known.failed > _MOST_COUNTED else 1.0
        counted[pool] = PoolResults(succeeded=known.succeeded * fading + counts.succeeded, failed=known.failed * fading + counts.failed)
    return counted


def causes(streak: Streak) -> int:
    """Count the causes that these failures have if it is not the machine.

    A job is one, however often it fails. The jobs of a project (branches of a repository) are one until something of it succeeds elsewhere.
    """
    return len({job if project_of(job) in streak.passed else project_of(job) for job in streak.jobs})


def chance_of_streak(streak: Streak, results: PoolResults) -> float:
    """Return how likely these failures are without any fault of their machine, by how often builds of its pool fail elsewhere."""
    failed = max(0.0, results.failed - streak.failures)
    return float(((failed + 1.0) / (failed + results.succeeded + 2.0)) ** causes(streak))
