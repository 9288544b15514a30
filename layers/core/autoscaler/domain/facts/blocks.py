"""Node blocks of pipelines: what a run's flow graph shows, and those that left their executor and whose end is not known yet."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from autoscaler.domain.facts.run_answers import BuildResult, RunEnd

# Of a name as many characters are kept and compared.
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
