"""How much of an agent the builds of a job take, as the fleet file says it: a weight counts in executors."""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache


@dataclass(frozen=True, slots=True, kw_only=True)
class JobWeights:
    """Weights by patterns of full names of jobs. Of a job that several match, the first counts; what none matches weighs 1."""

    by_pattern: tuple[tuple[str, int], ...] = ()

    def __bool__(self) -> bool:
        """Tell whether there are any."""
        return bool(self.by_pattern)

    @property
    def heaviest(self) -> int:
        """The weight of the heaviest."""
        return max((weight for _, weight in self.by_pattern), default=1)

    def of(self, job: str) -> int:
        """Say how many executors a build of this job counts for."""
        return _weight(self.by_pattern, job) if self.by_pattern else 1


@lru_cache(maxsize=20_000)  # asked of each build and each item in each look
def _weight(by_pattern: tuple[tuple[str, int], ...], job: str) -> int:
    return next((weight for pattern, weight in by_pattern if fnmatchcase(job, pattern)), 1)
