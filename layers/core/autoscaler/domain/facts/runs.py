"""Builds as Jenkins shows them: how one ended, what its run says when asked, its node blocks, and failures in a row."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple
from urllib.parse import unquote

# What a run says when it is asked whether it has ended, or how.


class RunAnswer(StrEnum):
    """What a run says when it is asked whether it has ended."""

    RUNS = "runs"
    WAITS_FOR_INPUT = "waits-for-input"  # of a person, in the middle of a pipeline
    ENDED = "ended"
    MAY_HAVE_ENDED = "may-have-ended"  # it is not building, and Jenkins does not say whether it is in progress
    NOT_TOLD = "not-told"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedRun:
    """A run that was asked whether it has ended, since its executor shows it for far too long.

    ``ended_at``: when it first said so; ``over_at``: when it was believed; ``seen_at``: when its executor last showed it;
    ``waits_for_input``: it runs, and a person is to answer it.
    """

    asked_at: float
    seen_at: float
    session: str
    ended_at: float | None = None
    over_at: float | None = None
    waits_for_input: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedEnds:
    """How many builds, stages of pipelines among them, left their agents on a day, and of how many the result was counted."""

    day_at: float = 0.0  # midnight UTC
    ended: int = 0
    counted: int = 0


class BuildResult(StrEnum):
    """How a build ended, if its node may be to blame. Aborted builds and builds that did not run have none."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"  # unstable ones, too: tests that fail may be the machine's doing


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenItems:
    """The queue items of a controller that were asked about: all before ``next``, in one session of it.

    ``open``: those that had not ended.
    """

    session: str = ""
    next: int = 1  # Jenkins begins with 1
    open: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """How a run ended, and how long it took by Jenkins' clock; None where that says nothing, or is not told."""

    result: BuildResult | None
    seconds: float | None = None
    item: int = 0  # by which it came; 0: not told


# Builds as Jenkins shows each of them: how one ended, what it was started with, and what else its job has.


# The queue item of a build of which nobody tells it.
NO_ITEM = -1


class Interruption(StrEnum):
    """What stopped a build that did not come to its own end. Jenkins notes nothing about a freestyle build whose agent is gone."""

    PERSON = "person"
    AGENT_GONE = "agent-gone"  # a pipeline's: its node was removed, or did not come back in time
    # A pipeline's: somebody took its node block out of the queue, or Jenkins found that on no executor any more.
    BLOCK_CANCELLED = "block-cancelled"
    OTHER = "other"  # a time-out, a newer build, a parallel branch that failed


class ItemState(StrEnum):
    """What became of a queue item."""

    WAITING = "waiting"
    STARTED = "started"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"  # it left more than five minutes ago, or Jenkins has lost it


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of a build. ``value``: None where Jenkins shows none, as of passwords and files."""

    name: str
    value: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One build. ``path``: ``job/a/job/b/7``; ``result``: Jenkins' word, "" while it runs; times by the controller's clock."""

    path: str
    is_pipeline: bool
    building: bool
    result: str
    started_at: float
    ended_at: float | None  # None: while it runs, and where Jenkins does not tell how long it took
    node: str  # that it ran on; "" where Jenkins does not say, as of pipelines
    item: int  # of the queue, that it came from
    parameters: tuple[Parameter, ...] = ()
    upstream: tuple[str, ...] = ()  # paths of the builds that caused it
    interruptions: tuple[Interruption, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """What became of one queue item. ``run``: the path of its build, once that has begun; of a pipeline's node block that of its run.

    ``node``: on which its build runs, "" where that is no agent, and of node blocks; ``end``: of a build on a node, None while it goes on;
    ``block``: the name that an executor shows for a node block, None of what is none.
    """

    state: ItemState
    run: str = ""
    node: str = ""
    end: RunEnd | None = None
    block: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A queue item of a job, or a build that came from one. ``is_ours``: our account is among those who asked for it.

    ``is_by_person``: a person asked for it, or a plugin that repeats builds, and our account did not; ``repeats``: paths of the builds that
    it was started to repeat, if Jenkins names any; ``build``: what the job's list says of the build, once it has begun.
    """

    item: int
    run: str  # "" while it waits
    at: float
    is_ours: bool
    parameters: tuple[Parameter, ...] = ()
    is_by_person: bool = False
    repeats: tuple[str, ...] = ()
    build: Run | None = None

    def has(self, name: str, value: str) -> bool:
        """Tell whether it was started with this parameter."""
        return Parameter(name=name, value=value) in self.parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job: whether it can be built, the names of its parameters, and what it has lately. ``is_whole``: nothing since is left out."""

    path: str
    buildable: bool
    declares: frozenset[str]
    entries: tuple[Entry, ...]
    is_whole: bool


def job_path_of(run: str) -> str:
    """Return the path of the job that a run belongs to: ``job/a/job/b/7`` is one of ``job/a/job/b``."""
    return run.rpartition("/")[0]


def job_name_of(run: str) -> str:
    """Return the full name of the job that a run belongs to, as people read it: ``job/a%20b/job/c/7`` is one of ``a b/c``."""
    return "/".join(unquote(name) for name in run.split("/")[1:-1:2])


def matrix_of(run: str) -> str | None:
    """Return the path of the matrix build that a configuration's run is a part of; None for any other run.

    ``job/m/os=linux,gpu=yes/7`` is one of ``job/m/7``.
    """
    parts = run.split("/")
    if len(parts) % 2 or len(parts) < 4:  # names come in pairs, job and its name, and a number last
        return None
    return "/".join((*parts[:-2], parts[-1]))


def hidden(parameters: Collection[Parameter]) -> tuple[str, ...]:
    """Name the parameters that cannot be repeated, since Jenkins does not show their values."""
    return tuple(parameter.name for parameter in parameters if parameter.value is None)


# Node blocks of pipelines: what a run's flow graph shows, and those that left their executor and whose end is not known yet.


# So many characters of a name are kept and compared.
NAME_CHARACTERS = 100


class BlockEnd(StrEnum):
    """How a node block ended. Only the first three say anything about its node."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNSTABLE = "unstable"  # it ended well, and a step in it said that tests failed
    CAUGHT = "error-caught"  # it ended well, and catchError or warnError caught an error in it
    FAILED_INSIDE = "failed-inside"  # a node block inside it failed, on that block's node
    ABORTED = "aborted"  # by a person, a timeout or a branch that failed
    LOST = "lost"  # its agent went away

    @property
    def result(self) -> BuildResult | None:
        """What it counts as for its node, as builds of other kinds do."""
        return _RESULTS.get(self)


_RESULTS = {
    BlockEnd.SUCCEEDED: BuildResult.SUCCEEDED,
    BlockEnd.FAILED: BuildResult.FAILED,
    BlockEnd.UNSTABLE: BuildResult.FAILED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeBlock:
    """A node block that got its executor. ``end``: None while it runs. ``names``: of stages and branches that an executor may show for it.

    ``asked_as``, ``begun_as``, ``ended_as``: the numbers of the steps with which it asked for its node, began and ended. ``node``: on which
    it ran, if the step's log was read.
    """

    names: frozenset[str]
    begun_as: int = 0
    end: BlockEnd | None = None
    ended_as: int = 0
    asked_as: int = 0
    node: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunGraph:
    """A run's flow graph. ``last``: the highest number of a step; ``end``: of the run, None while it goes on.

    ``shows_steps``: False if Jenkins tells no graph of this run; ``too_large``: it has more steps than are ever read; ``cut``: more than
    were read this time.
    """

    size: int  # bytes of the answer
    blocks: tuple[NodeBlock, ...] = ()
    last: int = 0
    end: RunEnd | None = None
    shows_steps: bool = True
    too_large: bool = False
    cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRun:
    """What is remembered of a graph that was read. ``assigned``: the blocks that found their node, by `NodeBlock.ended_as`."""

    last: int
    read_at: float = 0.0
    size: int = 0
    assigned: tuple[int, ...] = ()
    too_large: bool = False


class Shown(NamedTuple):
    """A name that an executor showed for a node block; "" if it showed none.

    ``after``: steps up to this number were there while the name was still shown, so that the block ended with none of them.
    """

    name: str
    after: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GoneBlock:
    """A node block that left its executor. ``shown``: the names that were shown for it, in order.

    Several blocks of one run that followed each other on one executor between looks are one until their graph tells them apart.
    ``tries``: how often its run was asked about in vain. ``is_lost``: its agent was away, or gone, when it left.
    """

    job: str
    pool: str
    node: str
    run: str
    since_at: float
    gone_at: float
    shown: tuple[Shown, ...] = ()
    tries: int = 0
    is_lost: bool = False

    @property
    def signature(self) -> str:
        """The name by which statistics tell it from other blocks of its job."""
        return self.shown[0].name if self.shown else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockCounts:
    """What became of node blocks that left their executors. Old ones count less."""

    assigned: float = 0.0
    ambiguous: float = 0.0  # their names fit several blocks
    unmatched: float = 0.0  # no block has their names, or nothing told in time how they ended
    run_gone: float = 0.0  # Jenkins does not show their run
    too_large: float = 0.0  # their run has more steps than are read

    @property
    def unassigned(self) -> float:
        """How many count for nobody."""
        return self.ambiguous + self.unmatched + self.run_gone + self.too_large


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """The node blocks of one controller. ``running``: by key of the build; ``gone``: not assigned yet; ``runs``: whose graph was read."""

    running: Mapping[str, tuple[Shown, ...]] = field(default_factory=dict)
    gone: tuple[GoneBlock, ...] = ()
    runs: Mapping[str, ReadRun] = field(default_factory=dict)
    counts: BlockCounts = field(default_factory=BlockCounts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Graphs:
    """The graphs that a look read, by run; None: Jenkins shows no such run. ``failed``: runs that were asked about in vain."""

    read: Mapping[str, RunGraph | None] = field(default_factory=dict)
    failed: frozenset[str] = frozenset()


# Builds that failed one after another on one node, and how often builds of a pool fail at all.


@dataclass(frozen=True, slots=True, kw_only=True)
class Streak:
    """Builds that failed in a row on one node.

    ``jobs``: theirs, without repeats and without those that fail on other nodes, too; the last ones. ``passed``: the projects of these jobs
    of which something succeeded on another node of the pool since.
    """

    failures: int
    since_at: float
    jobs: tuple[str, ...]
    pool: str = ""
    passed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolResults:
    """How many builds of a pool succeeded and failed lately."""

    succeeded: float = 0.0
    failed: float = 0.0
