"""The ports about builds: Jenkins' own, and the stores of what was answered, ordered and paid, and of what agents tell."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from autoscaler.domain.facts.job_settings import CostBatch, MonthCosts
from autoscaler.domain.facts.job_stats import JobRow, JobTracker, Subject
from autoscaler.domain.facts.runs import Item, Job, Run
from autoscaler.domain.facts.started_builds import Rerun, RerunState, RunOrder
from autoscaler.domain.facts.telemetry import Telemetry


class Builds(Protocol):
    """The builds of one controller, one by one. Calls raise `TransientError` (or `ConfigError` for a missing permission)."""

    def run(self, path: str) -> Run | None:
        """Read one build; None where Jenkins does not show it: it was deleted, or this account may not see it."""

    def job(self, path: str, since: float) -> Job | None:
        """Read one job, with what waits in the queue and what began of it; None where Jenkins does not show it.

        Four requests at most: `Job.is_whole` says whether everything since then is among its builds.
        """

    def item(self, item: int) -> Item:
        """Read what became of a queue item."""

    def start(self, job: str, parameters: Mapping[str, str] | None) -> int:
        """Start a build and return its queue item, which may have been there before: Jenkins merges equal ones.

        ``parameters``: None for a job that declares none. `RefusedBuildError`: nothing was done, and asking again would change nothing;
        `UnansweredError`: it may have been started, so look before asking again; any other error: nothing was done.
        """

    def stop(self, path: str) -> None:
        """Stop a build, which ends some seconds later, unless it is done before; a no-op where it has ended, or is not there.

        `RefusedBuildError` where this account may not. Safe to repeat: after an error, and while it goes on.
        """

    def cancel(self, item: int) -> bool:
        """Take an item out of the queue; False if it has left, and may have begun. `RefusedBuildError` where this account may not.

        Safe to repeat. A pipeline's run has left the queue at once: that is stopped, and what waits of it in the queue goes with it.
        """


class RerunStore(Protocol):
    """The store of what was answered for lost builds, one by one. A write that loses a race raises `ConflictError` and changes nothing."""

    def rerun(self, key: str) -> Rerun | None:
        """Read one answer; None where there is none."""

    def add_rerun(self, rerun: Rerun, *, holder: str) -> None:
        """Write a new answer; `ConflictError` if there is one to this build, or the lease is not ``holder``'s any more."""

    def change_rerun(self, rerun: Rerun, *, expected: RerunState) -> None:
        """Replace an answer whose state is still ``expected``."""


class RunOrderStore(Protocol):
    """The store of what people ordered to be run, one by one. A write that loses a race raises `ConflictError` and changes nothing."""

    def open_orders(self) -> tuple[RunOrder, ...]:
        """Read the orders that have not ended, oldest first; what cannot be read is left out."""

    def order(self, order_id: str) -> RunOrder | None:
        """Read one order, ended or not; None where there is none. `TransientError` for one that another version wrote."""

    def ended(self, most: int) -> tuple[RunOrder, ...]:
        """Read the orders that ended last, newest first. They are kept for 90 days."""

    def add_order(self, order: RunOrder) -> None:
        """Write a new order; `ConflictError` if there is one with this id, `ConfigError` if it is larger than can be kept."""

    def change_order(self, order: RunOrder) -> RunOrder:
        """Replace an open order of the same version, and return it with the next one; one with ``ended_at`` ends so.

        `ConflictError` if it was changed meanwhile, or has ended.
        """


class CostStore(Protocol):
    """The store of what jobs cost, for people alone: no pass reads it. A write that loses a race raises `ConflictError`."""

    def batch(self) -> CostBatch:
        """Read what is not in a month's costs yet; an empty batch where there is none."""

    def save_batch(self, batch: CostBatch, at: float) -> None:
        """Replace the batch that had this version; ``at``: now."""

    def month(self, name: str) -> MonthCosts:
        """Read the costs of a month or a day, without the batch; without any where there are none. Kept for 25 months, or for 63 days."""

    def book(self, months: Sequence[MonthCosts], batch: CostBatch, at: float) -> None:
        """Replace months, days and the batch, each of its version, all or nothing. Rows of what is too large are folded."""


class TelemetryStore(Protocol):
    """What each machine told of itself last; `RateLimiter.admit` writes it. Losing it costs nothing but the next five minutes' figures."""

    def latest(self) -> Mapping[str, Telemetry]:
        """Return the last report of each machine, by its id; a day old at the most. `TransientError`."""


class JobStore(Protocol):
    """Statistics of jobs, for people alone: no pass reads them. A write that loses a race raises `ConflictError`."""

    def tracker(self, controller: str) -> JobTracker:
        """Read what is under way on a controller; an empty one where there is none."""

    def save_tracker(self, controller: str, tracker: JobTracker, at: float) -> None:
        """Replace the tracker that had this version; ``at``: now."""

    def rows(self, controller: str, subjects: Collection[Subject]) -> tuple[JobRow, ...]:
        """Read the rows of these subjects, in all pools."""

    def save_rows(self, rows: Collection[JobRow], at: float) -> None:
        """Replace these rows, or add them; of too many those are kept that were seen last. ``at``: now."""

    def all_rows(self) -> tuple[JobRow, ...]:
        """Read every row of every controller."""
