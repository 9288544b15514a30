"""Results of builds that ran in the last look and are gone now: by pool, and failures in a row by node."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from autoscaler.domain.facts.memory import Learned, Sighting, Streak
from autoscaler.domain.facts.run_answers import BuildResult, CountedEnds
from autoscaler.domain.facts.snapshot import ControllerView

# How builds ended is asked for no longer than this a look: a slow controller must not keep it from saving what it saw, or the next look
# would ask for the same again.
RESULTS_SECONDS = 10.0
# One request each; what ends beyond that in one look stays unknown.
_ASKED_AT_ONCE = 50
_JOBS_NAMED = 20
DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Results of builds that ended since the last look."""

    succeeded: int = 0
    failed: int = 0


def gone_since(before: Learned, view: ControllerView) -> list[Sighting]:
    """List the builds that ran in the last look and are gone, up to the number asked about; none of an incomplete view."""
    return _gone(before, view)[:_ASKED_AT_ONCE]


def _gone(before: Learned, view: ControllerView) -> list[Sighting]:
    if not view.complete:
        return []
    running = {build.key for node in view.nodes for build in node.builds}
    return [sighting for key, sighting in before.running.items() if key not in running and sighting.run and sighting.node]


def count_ends(before: Learned, view: ControllerView, tallies: Mapping[str, Tally], now: float) -> CountedEnds:
    """Carry on the day's count of builds that left their agents, and of those whose result was counted."""
    ended = len(_gone(before, view))
    if not ended:
        return before.ends
    counted = sum(one.succeeded + one.failed for one in tallies.values())
    today = before.ends if before.ends.day_at == midnight_before(now) else CountedEnds(day_at=midnight_before(now))
    return replace(today, ended=today.ended + ended, counted=today.counted + counted)


def midnight_before(now: float) -> float:
    """Return when the day began, in UTC."""
    return now - now % DAY_SECONDS


def tally(gone: Iterable[Sighting], results: Mapping[str, BuildResult]) -> dict[str, Tally]:
    """Count results by pool. ``results``: by run, without unknown ones."""
    counts: dict[str, Tally] = {}
    for sighting in gone:
        if result := results.get(sighting.run):
            known = counts.get(sighting.pool, Tally())
            counts[sighting.pool] = Tally(
                succeeded=known.succeeded + (result is BuildResult.SUCCEEDED), failed=known.failed + (result is BuildResult.FAILED)
            )
    return counts


def note_streaks(
    before: Learned, gone: Iterable[Sighting], results: Mapping[str, BuildResult], view: ControllerView, now: float
) -> tuple[dict[str, Streak], dict[str, float]]:
    """Carry on the failure streaks of present nodes, and when a build last succeeded, by pool."""
    there = {node.name for node in view.nodes}
    streaks = {node: streak for node, streak in before.streaks.items() if node in there}
    succeeded_at = dict(before.succeeded_at)
    for sighting in sorted(gone, key=lambda sighting: sighting.since_at):
        result = results.get(sighting.run)
        if result is BuildResult.SUCCEEDED:
            streaks.pop(sighting.node, None)
            succeeded_at[sighting.pool] = now
        elif result is BuildResult.FAILED and sighting.node in there:
            streaks[sighting.node] = _longer(streaks.get(sighting.node), sighting.job, now)
    return streaks, succeeded_at


def _longer(streak: Streak | None, job: str, now: float) -> Streak:
    if streak is None:
        return Streak(failures=1, since_at=now, jobs=(job,))
    jobs = streak.jobs if job in streak.jobs else (*streak.jobs, job)[-_JOBS_NAMED:]
    return Streak(failures=streak.failures + 1, since_at=streak.since_at, jobs=jobs)
