"""Jobs that pools decline, though their labels would do: data that `forecast/declined.py` works out where a pool states a limit."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Decline:
    """Why a pool declines a job. ``seen_in``: the pool whose builds tell how long it takes."""

    pool: str
    seconds: float
    builds: int
    seen_in: str
    most_seconds: float

    @property
    def is_seen_there(self) -> bool:
        """Tell whether builds of the job ended in the pool itself."""
        return self.seen_in == self.pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Declined:
    """The jobs that pools decline, by controller and pool."""

    by_pool: Mapping[tuple[str, str], Mapping[str, Decline]] = field(default_factory=dict)

    def why(self, controller: str, pool: str, job: str, *, of_pipeline: bool = False) -> Decline | None:
        """Say why a pool declines a job, or parts of pipelines of this name; None if it takes them."""
        decline = self.by_pool.get((controller, pool), {}).get(job)
        return None if decline is None or (of_pipeline and not decline.is_seen_there) else decline

    def by_own_builds(self, controller: str, pool: str) -> frozenset[str]:
        """Name the jobs that a pool declines by builds that ended in the pool itself: parts of pipelines of this name, too."""
        return frozenset(job for job, decline in self.by_pool.get((controller, pool), {}).items() if decline.is_seen_there)
