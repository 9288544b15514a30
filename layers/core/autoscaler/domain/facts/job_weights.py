"""How much of an agent the builds of a job take: as the fleet file says it, as was learned, or as the Heavy Job plugin has it.

A weight counts in executors.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Self


class Source(StrEnum):
    """Who says what a job weighs, where the fleet file does not."""

    LEARNED = "learned"  # what its builds were seen to need
    PLUGIN = "heavy-job"  # the Heavy Job plugin, in the job's own configuration: Jenkins itself gives a build so many executors


Patterns = tuple[tuple[str, int | Source], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginWeight:
    """What the plugin gave a job when its configuration was last read."""

    weight: int
    read_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JobWeights:
    """Weights by patterns of full names of jobs. If several match a job, the first counts; a job that none matches weighs 1.

    ``known``: of the jobs of each source, those that weigh more than 1.
    """

    by_pattern: Patterns = ()
    known: Mapping[Source, Mapping[str, int]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Tell whether there are any."""
        return bool(self.by_pattern)

    def asks(self, source: Source) -> bool:
        """Tell whether this source is asked of any job."""
        return any(weight is source for _, weight in self.by_pattern)

    def source_of(self, job: str) -> Source | None:
        """Say who is asked what a job weighs; None where the fleet file says it."""
        weight = _weight(self.by_pattern, job) if self.by_pattern else 1
        return weight if isinstance(weight, Source) else None

    @property
    def heaviest(self) -> int:
        """The weight of the heaviest that Jenkins would put anywhere."""
        written = (weight for _, weight in self.by_pattern if not isinstance(weight, Source))
        return max((*written, *self.known.get(Source.LEARNED, {}).values()), default=1)

    def of(self, job: str) -> int:
        """Say how many executors a build of this job needs."""
        weight = _weight(self.by_pattern, job) if self.by_pattern else 1
        return self.known.get(weight, {}).get(job, 1) if isinstance(weight, Source) else weight

    def of_running(self, job: str) -> int:
        """Say how many executors a build takes of those that Jenkins shows as free: those that the plugin gave it are shown as busy."""
        return 1 if self.source_of(job) is Source.PLUGIN else self.of(job)

    def knowing(self, source: Source, of_controllers: Iterable[Mapping[str, int]]) -> Self:
        """Return them with what a source says on each controller. Of jobs of one name the heaviest counts."""
        known: dict[str, int] = {}
        for weights in of_controllers if self.asks(source) else ():
            known |= {job: max(weight, known.get(job, 1)) for job, weight in weights.items()}
        return replace(self, known={**self.known, source: known}) if known else self


@lru_cache(maxsize=20_000)  # asked of each build and each item in each look
def _weight(by_pattern: Patterns, job: str) -> int | Source:
    return next((weight for pattern, weight in by_pattern if fnmatchcase(job, pattern)), 1)
