"""How much of an agent the builds of a job take, as the fleet file says it or as was learned: a weight counts in executors."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Self

Patterns = tuple[tuple[str, int | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobWeights:
    """Weights by patterns of full names of jobs. Of a job that several match, the first counts; what none matches weighs 1.

    None: as was learned of each job, 1 until then. ``learned``: by job, those that weigh more.
    """

    by_pattern: Patterns = ()
    learned: Mapping[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Tell whether there are any."""
        return bool(self.by_pattern)

    @property
    def learns(self) -> bool:
        """Tell whether weights of some jobs are learned."""
        return any(weight is None for _, weight in self.by_pattern)

    @property
    def heaviest(self) -> int:
        """The weight of the heaviest."""
        written = (weight for _, weight in self.by_pattern if weight is not None)
        return max((*written, *(self.learned.values() if self.learns else ())), default=1)

    def of(self, job: str) -> int:
        """Say how many executors a build of this job counts for."""
        weight = _weight(self.by_pattern, job) if self.by_pattern else 1
        return self.learned.get(job, 1) if weight is None else weight

    def is_learned(self, job: str) -> bool:
        """Tell whether a job's weight is learned."""
        return bool(self.by_pattern) and _weight(self.by_pattern, job) is None

    def knowing(self, learned: Iterable[Mapping[str, int]]) -> Self:
        """Return them with what was learned on each controller. Of jobs of one name the heaviest counts."""
        known: dict[str, int] = {}
        for weights in learned if self.learns else ():
            known |= {job: max(weight, known.get(job, 1)) for job, weight in weights.items()}
        return replace(self, learned=known) if known else self


@lru_cache(maxsize=20_000)  # asked of each build and each item in each look
def _weight(by_pattern: Patterns, job: str) -> int | None:
    return next((weight for pattern, weight in by_pattern if fnmatchcase(job, pattern)), 1)
