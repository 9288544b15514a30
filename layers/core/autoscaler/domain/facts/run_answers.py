"""What a run says when it is asked whether it has ended, or how."""

from dataclasses import dataclass
from enum import StrEnum


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
