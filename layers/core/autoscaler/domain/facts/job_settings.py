"""What the fleet file says of jobs: how costs are shared, what builds weigh, what tells them apart, and which pools decline them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import NamedTuple, Self

# What jobs cost: how a month's dollars are shared among them. Data, no decisions.


class CostKey(NamedTuple):
    """Whose costs: a job of a controller in a pool. ``job``: as in its URL, ``FOLDER/*`` or ``*`` of several, ``@PERSON`` of a reservation.

    Jenkins allows neither of these signs in a name.
    """

    controller: str
    pool: str
    job: str


class Used(NamedTuple):
    """What a job had: dollars, and hours of executors."""

    usd: float = 0.0
    hours: float = 0.0

    def plus(self, other: "Used") -> "Used":
        """Add."""
        return Used(self.usd + other.usd, self.hours + other.hours)


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthParts:
    """What some of a month's metered dollars were for: boots, stopped agents, volumes of all."""

    boot_usd: float = 0.0
    stopped_usd: float = 0.0
    disk_usd: float = 0.0

    def plus(self, other: "MonthParts") -> "MonthParts":
        """Add."""
        return MonthParts(
            boot_usd=self.boot_usd + other.boot_usd,
            stopped_usd=self.stopped_usd + other.stopped_usd,
            disk_usd=self.disk_usd + other.disk_usd,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthCosts:
    """The dollars of a calendar month (UTC), as 2026-11, or of a day of it, as 2026-11-27.

    ``unused``: of agents on which nothing ran, by pool. ``metered_usd``: what all sums up to; ``parts``: of a month alone.
    """

    name: str
    used: Mapping[CostKey, Used] = field(default_factory=dict)
    unused: Mapping[str, float] = field(default_factory=dict)
    metered_usd: float = 0.0
    parts: MonthParts = field(default_factory=MonthParts)
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CostBatch:
    """What looks saw that is not in the month's costs yet.

    ``used``, ``unused``: at the prices that are expected. They say in which shares jobs have what the meter counted meanwhile.
    """

    month: str = ""
    seen_at: float = 0.0  # the last look
    opened_at: float = 0.0  # by the meter's time
    metered_at: float = 0.0  # what the meter said at the last look, and when it was written
    metered: Mapping[str, float] = field(default_factory=dict)  # dollars of the month by pool
    spent: Mapping[str, float] = field(default_factory=dict)  # of these, since the batch was opened
    used: Mapping[CostKey, Used] = field(default_factory=dict)
    unused: Mapping[str, float] = field(default_factory=dict)
    parts: MonthParts = field(default_factory=MonthParts)  # of the month, as the meter said at the last look
    version: int = 0


# How much of an agent the builds of a job take: as the fleet file says it, as was learned, or as the Heavy Job plugin has it.
#
# A weight counts in executors.


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


# Which parameters tell the builds of a job apart, as the fleet file says it; for people's statistics alone.


# A signature is kept with each build that is followed, and in each row of the statistics.
SIGNATURE_CHARACTERS = 100
_VALUE_CHARACTERS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class JobParameters:
    """Names of parameters by patterns of full names of jobs. If several match a job, the names of all of them count."""

    by_pattern: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __bool__(self) -> bool:
        """Tell whether there are any."""
        return bool(self.by_pattern)

    def signature(self, job: str, given: Mapping[str, str]) -> str:
        """Say what tells a build apart that was started with these values: ``ARCH=arm64, SUITE=full``; "" where nothing does."""
        names = dict.fromkeys(name for pattern, names in self.by_pattern if fnmatchcase(job, pattern) for name in names)
        told = ", ".join(f"{name}={_cut(given[name], _VALUE_CHARACTERS)}" for name in names if name in given)
        return _cut(told, SIGNATURE_CHARACTERS)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


# Jobs that pools decline, though their labels would do: data that `forecast/declined.py` works out where a pool states a limit.


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
