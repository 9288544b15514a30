"""What is known of jobs beyond what a pass needs: people ask for it, and no decision depends on it. Data, no decisions."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from autoscaler.domain.facts.memory import TrackRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A distribution of seconds, or of ratios: weights by logarithmic step. Old values weigh less."""

    weights: Mapping[int, float] = field(default_factory=dict)
    squares: float = 0.0  # the sum of the squared weights of all values: how many the weights are worth
    count: int = 0
    at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """When something will happen, in seconds: the tenth percentile, the median and the ninetieth."""

    low: float
    mid: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """How far off predictions were: the sum of the logarithms of the ratios, and their weight. Old ones weigh less."""

    error: float = 0.0
    weight: float = 0.0


@dataclass(frozen=True, slots=True, order=True)
class Subject:
    """Whose statistics: a job, with the stage or the parameters that tell its builds apart, or without."""

    job: str
    signature: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSize:
    """What a machine has: bytes of memory, cores, whether there is a graphics card. 0: nobody knows."""

    memory: float = 0.0
    cores: float = 0.0
    has_gpu: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """What the machines were that builds ran on, as their agents reported them; ``gpu``: how often there was a card."""

    memory: Spread = field(default_factory=Spread)
    cores: Spread = field(default_factory=Spread)
    gpu: TrackRecord = field(default_factory=TrackRecord)


@dataclass(frozen=True, slots=True, kw_only=True)
class Used(Machines):
    """What builds used: the most bytes of memory, cores on the average, the most bytes of GPU memory; and how often a GPU at all."""

    gpu_memory: Spread = field(default_factory=Spread)


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What builds of a subject need: those that were ``alone`` on their machine, which is exact, and those ``beside`` others."""

    alone: Used = field(default_factory=Used)
    beside: Used = field(default_factory=Used)
    ran_on: Machines = field(default_factory=Machines)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedUse:
    """A build that has ended on a ``machine`` which tells what its builds use, and has yet to tell of this one's end."""

    job: str
    run: str
    signature: str
    pool: str
    machine: str
    ended_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """What was seen of a subject's builds in one pool. ``ranges``, ``starts``: how often a predicted range held."""

    controller: str
    subject: Subject
    pool: str
    first_at: float
    seen_at: float
    runs: int = 0
    results: TrackRecord = field(default_factory=TrackRecord)
    durations: Spread = field(default_factory=Spread)
    waits: Spread = field(default_factory=Spread)
    ranges: TrackRecord = field(default_factory=TrackRecord)
    starts: TrackRecord = field(default_factory=TrackRecord)
    skill: Skill = field(default_factory=Skill)
    needs: Needs = field(default_factory=Needs)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingItem:
    """An item of the queue: when it was predicted to start, from when on, and how long its build takes; None: not known."""

    signature: str
    asked_at: float
    duration: Estimate | None = None
    start: Estimate | None = None
    bare_seconds: float = 0.0  # the prediction without regard to what came of others
    corrected_seconds: float = 0.0  # the same, corrected by it
    kinds: tuple[str, ...] = ()  # of the prediction, the closest first


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningBuild:
    """A build on an executor. ``waited``: None where it was never seen in the queue; ``on_time``: its start was in the range."""

    signature: str
    since_at: float
    waited: float | None
    on_time: bool | None
    duration: Estimate | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTracker:
    """What is under way on one controller, by item id and build key, and how well predictions of each kind did.

    ``uses``: builds that have ended, by key, until their machine has told what they used.
    """

    waiting: Mapping[str, WaitingItem] = field(default_factory=dict)
    running: Mapping[str, RunningBuild] = field(default_factory=dict)
    ratios: Mapping[str, Spread] = field(default_factory=dict)  # of what came to what was predicted, by kind of prediction
    skills: Mapping[str, Skill] = field(default_factory=dict)  # by kind of subject
    uses: Mapping[str, EndedUse] = field(default_factory=dict)
    weights: Mapping[str, int] = field(default_factory=dict)  # of jobs that need more than one executor's share
    version: int = 0
