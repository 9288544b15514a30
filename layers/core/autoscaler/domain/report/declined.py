"""Jobs that pools decline since they take too long: who is told, and what `why` says. Only a fleet with `max_job_seconds` loads this.

Jenkins starts such a job on a free executor all the same if it asks for a label of the pool: that is told, too.
"""

from collections.abc import Collection, Iterable, Iterator
from math import inf
from shlex import quote

from autoscaler.domain.facts.job_settings import Decline
from autoscaler.domain.facts.snapshot import QueueItem
from autoscaler.domain.forecast.job_patterns import project_of
from autoscaler.domain.report.problems import CURE
from autoscaler.domain.report.told import Seen
from autoscaler.domain.situation.looks import elapsed_seconds
from autoscaler.domain.situation.situation import Situation
from autoscaler.domain.wording import counted, duration, listed

TOO_LONG, RUN_LONG = "too-long/", "runs-long/"
_RUNBOOK = "operations.md#jobs-too-long"
# A build that has run for so many times the limit is too long, though nobody has seen one of its job end.
_SURELY_TOO_LONG = 1.5
# People who read so many messages of one controller know what the key does.
_MOST_TOLD = 20
_NAMED = 5


def declines_seen(situation: Situation, told: Collection[str]) -> Iterator[tuple[str, Seen]]:
    """Name the jobs that a pool declines or that no pool takes: from when one of them waits, as long as it would be declined again."""
    for controller in situation.demands:
        begins = f"{TOO_LONG}{controller}/"
        seen = dict(_of_waiting(situation, controller, begins))
        names_told = [name for name in told if name.startswith(begins)]
        fresh = [name for name in seen if name not in names_told][: max(0, _MOST_TOLD - len(names_told))]
        yield from ((name, seen[name]) for name in seen if name in names_told or name in fresh)
        yield from _still_told(situation, controller, [name.removeprefix(begins) for name in names_told if name not in seen])
        yield from _of_running(situation, controller)


def _of_running(situation: Situation, controller: str) -> Iterator[tuple[str, Seen]]:
    """Name the pools on whose agents builds run that are too long for them."""
    for name, pool in situation.pools_of(controller).items():
        most, learned = pool.spec.max_job_seconds or inf, situation.snapshot.learned[controller]
        ran = {build: elapsed_seconds(build, learned, situation.now) for build in pool.builds}
        long = {
            build.job: f"{build.job} for {duration(seconds)} so far"
            for build, seconds in ran.items()
            if seconds > _SURELY_TOO_LONG * most or situation.fleet.declines(controller, name, build.job, of_pipeline=build.is_block)
        }
        if long:
            text = (
                f"{name} is for jobs of up to {duration(most)} (max_job_seconds), and runs {listed([*long.values()], _NAMED)}.\n"
                "Jenkins starts a job wherever an executor is free and the node has its labels. "
                f"In Jenkins, {CURE}, and long jobs another one."
            )
            yield f"{RUN_LONG}{controller}/{name}", Seen(f"long jobs run on {name}", text, _RUNBOOK, f"autoscaler why {name}")


def _of_waiting(situation: Situation, controller: str, begins: str) -> Iterator[tuple[str, Seen]]:
    """Make the messages of what waits now: one for each pool that declines it, or one if no pool takes it."""
    for item, declines, takers in _declined_items(situation, controller):
        ask, subject = f"autoscaler why {quote(item.job)}", _subject(item)
        if not takers:
            lines = (
                *(f"{_why(decline, item.job)}." for decline in declines),
                "No pool takes it. It waits until Jenkins starts it on an executor that is free anyway, or somebody changes the limit.",
            )
            yield name_of_untaken(controller, item), Seen(_title("", subject), "\n".join(lines), _RUNBOOK, ask)
        for decline in declines if takers else ():
            text = f"{_why(decline, item.job)}.\n{_takers(item.job, takers)}."
            yield f"{begins}{decline.pool}:{subject}", Seen(_title(decline.pool, subject), text, _RUNBOOK, ask)


def _still_told(situation: Situation, controller: str, names_told: Iterable[str]) -> Iterator[tuple[str, Seen]]:
    """Carry on what people were told of jobs that do not wait now, and that would be declined again."""
    waiting = {_subject(item) for item, _, _ in _declined_items(situation, controller)}
    by_pool = situation.fleet.declined.by_pool if situation.fleet.declined else {}
    jobs = {(pool, job) for (name, pool), declines in by_pool.items() if name == controller for job in declines}
    # Pipelines, too, whose branches these may be; with the pool, and with none.
    declined = {(where, subject) for pool, job in jobs for where in (pool, "") for subject in (job, _branches(job))}
    for name in names_told:
        pool, _, subject = name.partition(":")
        if subject not in waiting and (pool, subject) in declined:
            yield f"{TOO_LONG}{controller}/{name}", Seen(_title(pool, subject), "", _RUNBOOK, f"autoscaler why {quote(subject)}")


def name_of_untaken(controller: str, item: QueueItem) -> str:
    """Name the message that no pool takes an item."""
    return f"{TOO_LONG}{controller}/:{_subject(item)}"


def _subject(item: QueueItem) -> str:
    """Name the job of an item, or all branches of a pipeline."""
    return _branches(item.job) if item.run and "/" in item.job else item.job


def _title(pool: str, subject: str) -> str:
    return f"{subject} takes too long for {pool}" if pool else f"{subject} takes too long for every pool that has its labels"


def _declined_items(situation: Situation, controller: str) -> Iterator[tuple[QueueItem, tuple[Decline, ...], tuple[str, ...]]]:
    """Find the items of a queue that pools decline, once each has waited for as long as demand must; and the pools that take it."""
    demand = situation.demands[controller]
    wants = ((want.item, want.declined_by, tuple(pool.name for pool in want.pools)) for want in demand.wants)
    for item, names, takers in (*wants, *((unmet.item, unmet.declined_by, ()) for unmet in demand.unmet)):
        pools = [name for name in sorted(names) if item.waiting_seconds >= situation.fleet.pools[name].queue_maturity_seconds]
        why = [situation.fleet.declines(controller, pool, item.job, of_pipeline=bool(item.run)) for pool in pools]
        if declines := tuple(filter(None, why)):
            yield item, declines, takers


def _branches(job: str) -> str:
    return f"{project_of(job)}/*"


def told_of_job(situation: Situation, job: str) -> Iterator[str]:
    """Say which pools decline a job, and which take it. If it does not wait, name the pools that have run it."""
    waiting = [entry for controller in situation.demands for entry in _declined_items(situation, controller) if entry[0].job == job]
    for _, declines, takers in waiting:
        yield from (_why(decline, job) for decline in declines)
        yield _takers(job, takers)
    by_pool = situation.fleet.declined.by_pool if situation.fleet.declined and not waiting else {}
    yield from (_why(jobs[job], job) for jobs in by_pool.values() if job in jobs and jobs[job].is_seen_there)


def _takers(job: str, takers: tuple[str, ...]) -> str:
    takes = "take" if len(takers) > 1 else "takes"
    return f"{listed(takers) or 'no pool'} {takes} {job}{' instead' if takers else ''}"


def told_of_pool(situation: Situation, controller: str, pool: str) -> Iterator[str]:
    """Say which jobs a pool declines, by its own builds."""
    most, jobs = situation.fleet.pools[pool].max_job_seconds, situation.fleet.declined
    if most is None or jobs is None:
        return
    names = sorted(jobs.by_own_builds(controller, pool))
    which = f": {listed(names, _NAMED)}" if names else ", and none of the jobs that it has run does"
    yield f"jobs that take longer than {duration(most)} are no demand for it (max_job_seconds){which}"


def _why(decline: Decline, job: str) -> str:
    seen = f"median of the last {counted(decline.builds, 'build')} in {decline.seen_in}"
    limit = f"{decline.pool} takes jobs of up to {duration(decline.most_seconds)} (max_job_seconds)"
    return f"{job} takes {duration(decline.seconds)} ({seen}), and {limit}"
