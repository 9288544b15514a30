"""Builds that were lost with their agents, for people: what became of each, and which of them somebody must see to."""

from collections.abc import Iterator

from autoscaler.domain.facts.runs import job_name_of
from autoscaler.domain.facts.started_builds import LeftBuild
from autoscaler.domain.report.told import LOST, Seen
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import duration

_NAMED = 10


def told_lost(situation: Situation, job: str) -> Iterator[str]:
    """Say of a job which builds were lost lately, and what is done about each."""
    memory, now = situation.memory, situation.now
    for lost in memory.lost.values():
        if job_name_of(lost.unit) == job:
            ago = f"{duration(now - lost.since_at)} ago" if now - lost.since_at >= 1 else "just now"
            yield f"{lost.run} lost its agent {lost.node} {ago}: {lost.how}; it is run again once Jenkins has ended it, if it was lost"
    for name, again in memory.reruns.items():
        if job_name_of(again.run) == job:
            item, ago = name.rpartition("#")[2], f"{duration(now - again.at)} ago"
            if again.by_person:
                yield f"{again.run} was lost; it is not run again, since a person had started it again as queue item {item} (noted {ago})"
            else:
                yield f"{again.run} was lost, and was run again {ago} as queue item {item} (time {again.times})"
    for left in memory.left.values():
        if job_name_of(left.run) == job:
            yield f"{left.run} was lost {duration(now - left.at)} ago, and is left to a person: {left.why}"


def lost_seen(situation: Situation) -> Iterator[tuple[str, Seen]]:
    """Name the jobs of which lost builds were left to a person, a message for each."""
    by_job: dict[tuple[str, str], list[LeftBuild]] = {}
    for left in situation.memory.left.values():
        by_job.setdefault((left.controller, job_name_of(left.run)), []).append(left)
    for (controller, job), builds in by_job.items():
        yield f"{LOST}{controller} {job}", _left(job, builds)


def _left(job: str, builds: list[LeftBuild]) -> Seen:
    lines = [f"{one.run} on {one.controller}: {one.why}" for one in builds[:_NAMED]]
    more = [f"and {len(builds) - _NAMED} more"] if len(builds) > _NAMED else []
    then = "Nothing starts it again by itself: look at it, and start it by hand where it is still wanted."
    text = "\n".join([*lines, *more, then])
    return Seen(f"a lost build of {job} is left to you", text, "operations.md#builds-left", f"autoscaler why '{job}'")
