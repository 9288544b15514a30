"""Builds of the simulated Jenkins: what asks for an executor, and how it ended."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf
from typing import TYPE_CHECKING

from autoscaler.domain.labels import LabelExpression, LabelSyntaxError, one_label, parse
from autoscaler_workbench.fakes.world.jenkins.urls import job_path

if TYPE_CHECKING:
    from autoscaler_workbench.fakes.world.jenkins.flow import Flow

# From the step `sh` until the agent has begun its script.
_SH_STARTS_SECONDS = 2.0


class Kind(StrEnum):
    """What asks for an executor."""

    FREESTYLE = "freestyle"
    PIPELINE = "pipeline"


class Ended(StrEnum):
    """How a build ended."""

    FINISHED = "finished"
    KILLED = "killed"  # its agent was taken from under it
    ABORTED = "aborted"  # a person stopped it
    RESTARTED = "restarted"  # a freestyle build that the controller's own restart ended


class Stopper(StrEnum):
    """Who stopped a build, as Jenkins notes it; of a freestyle build whose agent is gone it notes nothing."""

    PERSON = "person"
    REMOVED_NODE = "removed-node"  # a pipeline's, five minutes after its node was deleted
    AGENT_AWAY = "agent-away"  # a pipeline's, five minutes after its agent went away
    CANCELLED_ITEM = "cancelled-item"  # a pipeline's, whose node block was taken out of the queue, or is on no executor any more


@dataclass(frozen=True, slots=True)
class Started:
    """Parameters and causes of a build. ``parameters``: None if no value is shown; ``upstream``: paths of runs.

    ``repeats``: paths of runs that somebody repeated by the plugin Rebuilder.
    """

    parameters: tuple[tuple[str, str | None], ...] = ()
    users: tuple[str, ...] = ()
    upstream: tuple[str, ...] = ()
    repeats: tuple[str, ...] = ()


@dataclass(eq=False, slots=True, kw_only=True)
class Build:
    """One allocation of an executor, from the queue to its end."""

    id: int
    controller: str
    kind: Kind
    job: str  # folder/job
    number: int
    label: str | None
    seconds: float
    queued_at: float
    buildable_at: float
    on_end: Callable[["Build"], None] | None = None
    stage: str = ""  # that encloses a pipeline's step
    label_is_given: bool = False  # by a parameter of its own, not by its job
    run_item: int | None = None  # the queue item of a pipeline's run, which left at once; ``id`` is that of its node block
    expression: LabelExpression | None = field(init=False)
    blocked: bool = False
    started_at: float | None = None
    ended_at: float | None = None
    ended: Ended | None = None
    node: str | None = None
    executor: int = 0
    resumes_on: str | None = None  # after a restart: it waits for this very node
    killed_by: str = ""
    succeeded: bool = False
    started_with: Started = Started()
    configuration: str = ""  # of the matrix whose part it is, as paths have it: os=linux,gpu=yes
    stopped_by: Stopper | None = None
    takes_card: bool = False  # by a lease, before its work begins
    leased_at: float | None = None
    sh_at: float | None = None  # when the newest `sh` of a script was called; without a script it begins with the build
    is_pending: bool = False  # it was handed to an executor that has not begun
    waits_for_input: bool = False  # of a person, in the middle of a pipeline
    stays_on_executor: bool = False  # Jenkins goes on showing it there after its end
    is_dropped: bool = False  # Jenkins forgot it before it began
    is_whole_matrix: bool = False  # it has no executor, and waits for its configurations
    is_unsaved: bool = False  # a restart by force ended it before Jenkins had written it down
    fails: bool = False  # whatever machine it runs on
    body: Callable[[], None] | None = None  # what begins with it; None: it takes its seconds
    flow: "Flow | None" = None  # of a run that has a script

    def __post_init__(self) -> None:
        """Read the label as Jenkins does."""
        self.expression = _expression(self.label)

    @property
    def lost_its_machine(self) -> bool:
        """What it ran has ended with a machine that was stopped or lost its power, whatever may connect there later."""
        return "was stopped" in self.killed_by or "lost its power" in self.killed_by

    def sh_has_begun(self, now: float) -> bool:
        """Tell whether its script runs on the agent. Until then it is lost with the agent; afterwards it waits for the agent."""
        called_at = self.sh_at or self.started_at
        return called_at is not None and now >= called_at + _SH_STARTS_SECONDS

    @property
    def is_taken(self) -> bool:
        """It has an executor, or was handed to one."""
        return self.started_at is not None or self.is_pending

    @property
    def done_at(self) -> float:
        """When its work is done; never, as long as it waits for a card."""
        begun_at = self.leased_at if self.takes_card else self.started_at
        return begun_at + self.seconds if begun_at is not None else inf

    @property
    def asks_for(self) -> str:
        """The name of its label expression; "" for any node that takes jobs without a label."""
        return self.expression.name if self.expression else ""

    @property
    def run_path(self) -> str:
        """The path of its run, as URLs have it."""
        return f"{self.job_path}{self.configuration and f'{self.configuration}/'}{self.number}/"

    @property
    def job_path(self) -> str:
        """The path of its job, as URLs have it."""
        return job_path(self.job)


def _expression(label: str | None) -> LabelExpression | None:
    if label is None:
        return None
    try:
        return parse(label)
    except LabelSyntaxError:
        return one_label(label)
