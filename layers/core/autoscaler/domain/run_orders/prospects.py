"""What builds of a job would come to in one pool: when each would start, how long they take there, and what one costs."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from autoscaler.domain.facts.job_stats import JobRow, JobTracker, Subject
from autoscaler.domain.facts.snapshot import QueueItem, Wait
from autoscaler.domain.forecast.durations import best_row, duration_of
from autoscaler.domain.launch.queue import BareStart, WaitsFor, bare_starts
from autoscaler.domain.report.tracking import ends_of
from autoscaler.domain.situation.distrust import Want
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler.domain.situation.situation import Situation

_NOBODY = -1_000_000  # ids of items that are not there begin here


@dataclass(frozen=True, slots=True, kw_only=True)
class Prospect:
    """Seconds from now until each build would start; those are left out that nobody knows to start. ``takes``: None: none was seen.

    ``usd``: of one build, what its machine costs to boot for it included.
    """

    starts: tuple[float, ...]
    takes: float | None
    usd: float | None

    def ends(self, number: int, assumed: float) -> float | None:
        """When the build of this number would end; ``assumed``: how long it takes, where that is not known."""
        if number >= len(self.starts):
            return None
        return self.starts[number] + (assumed if self.takes is None else self.takes)


def prospect(situation: Situation, pool: PoolView, job: str, count: int, tracker: JobTracker, rows: Iterable[JobRow]) -> Prospect:
    """Predict so many builds of a job that would be queued now for a pool alone, after all that waits already."""
    takes = _takes(pool.name, job, tracker, list(rows))
    starts = _starts(situation, pool, job, count, tracker, takes)
    return Prospect(starts=tuple(sorted(one.seconds for one in starts)), takes=takes, usd=_usd(pool, takes, starts))


def _takes(pool: str, job: str, tracker: JobTracker, rows: list[JobRow]) -> float | None:
    """Estimate from builds in this pool, or else from those elsewhere."""
    mine = [row for row in rows if row.subject == Subject(job)]
    for seen in ([row for row in mine if row.pool == pool], mine):
        if estimate := duration_of(best_row(seen, tracker.skills), tracker):
            return estimate.mid
    return None


def _starts(situation: Situation, pool: PoolView, job: str, count: int, tracker: JobTracker, takes: float | None) -> list[BareStart]:
    wants = [Want(item=_made_up(job, _NOBODY - number), pools=(pool.spec,), expression=None) for number in range(count)]
    demand = situation.demands[pool.controller]
    queued = replace(situation, demands={**situation.demands, pool.controller: replace(demand, wants=(*demand.wants, *wants))})
    work = {int(item): known.duration.mid for item, known in tracker.waiting.items() if known.duration}
    work |= {want.item.id: takes for want in wants if takes is not None}
    starts = bare_starts(queued, pool.controller, ends_of(tracker, situation.now), work)
    return [starts[want.item.id] for want in wants if want.item.id in starts]


def _made_up(job: str, number: int) -> QueueItem:
    wait = Wait(for_executor=True)
    return QueueItem(id=number, job=job, run="", label=None, labelless=False, wait=wait, buildable=True, waiting_seconds=0.0)


def _usd(pool: PoolView, takes: float | None, starts: list[BareStart]) -> float | None:
    """Price a build: its share of a machine, and the boot of one where that has to be launched for the first of them."""
    if takes is None or not pool.spec.offerings:
        return None
    per_second = min(offering.billed_usd_per_hour for offering in pool.spec.offerings) / 3600.0
    first = min(starts, key=lambda one: one.seconds, default=None)
    boots = pool.boot_seconds if first is not None and first.waits_for is WaitsFor.LAUNCH else 0.0
    return per_second * (takes / pool.spec.executors + boots)
