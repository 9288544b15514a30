"""Builds that failed one after another on one node, and how often builds of a pool fail at all."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Streak:
    """Builds that failed in a row on one node; ``jobs``: their jobs, without repeats.

    ``runs``: the last of them with their jobs, without repeats; ``repeated``: further failures of a run; ``elsewhere``: jobs of which
    something succeeded on another node since.
    """

    failures: int
    since_at: float
    jobs: tuple[str, ...]
    runs: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    repeated: int = field(default=0, compare=False)
    elsewhere: tuple[str, ...] = field(default=(), compare=False)

    @property
    def causes(self) -> int:
        """How many failures may have a cause each: several blocks of one run fail for one reason, if it is the code's."""
        return self.failures - self.repeated

    @property
    def independent(self) -> int:
        """How many runs failed here of which, or of whose job, something succeeded elsewhere meanwhile."""
        return sum(job in self.elsewhere for job, _ in self.runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolResults:
    """How many builds of a pool succeeded and failed lately."""

    succeeded: float = 0.0
    failed: float = 0.0
