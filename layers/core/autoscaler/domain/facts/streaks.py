"""Builds that failed one after another on one node, and how often builds of a pool fail at all."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedRun:
    """A pipeline's run of which node blocks failed in a row on one node.

    ``succeeded``: its blocks that did on other nodes of the pool meanwhile; ``failed``: those that did on any other node;
    ``job_succeeded``: something of its job succeeded elsewhere.
    """

    run: str
    job: str
    pool: str
    failures: int = 0
    succeeded: int = 0
    failed: int = 0
    job_succeeded: bool = False

    @property
    def independent(self) -> int:
        """How many of its failures have a cause each, if that is not the node.

        Blocks of one run fail together if its code is broken. Then they fail elsewhere, too.
        """
        return 1 if self.failed else min(self.failures, max(1, self.succeeded))


@dataclass(frozen=True, slots=True, kw_only=True)
class Streak:
    """Builds that failed in a row on one node; ``jobs``: their jobs, without repeats; ``runs``: those of pipelines, the last ones."""

    failures: int
    since_at: float
    jobs: tuple[str, ...]
    runs: tuple[FailedRun, ...] = ()

    @property
    def causes(self) -> int:
        """How many failures may have a cause each: all blocks of a run may fail for one reason."""
        return self.failures - sum(run.failures - 1 for run in self.runs)

    @property
    def independent(self) -> int:
        """How many failures of pipelines do not share a cause, unless it is the node: a job counts once that succeeds nowhere."""
        unsure = {run.job for run in self.runs if not run.job_succeeded}
        return sum(run.independent for run in self.runs if run.job_succeeded) + len(unsure)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolResults:
    """How many builds of a pool succeeded and failed lately."""

    succeeded: float = 0.0
    failed: float = 0.0
