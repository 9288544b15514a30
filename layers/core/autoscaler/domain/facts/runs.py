"""Builds as Jenkins shows each of them: how one ended, what it was started with, and what else its job has."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import unquote

from autoscaler.domain.facts.run_answers import RunEnd

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
