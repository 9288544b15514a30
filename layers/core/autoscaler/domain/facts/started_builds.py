"""Builds that the autoscaler starts: those that people ordered, and lost ones; and items that are followed until they begin."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Self
from urllib.parse import quote

from autoscaler.domain.facts.runs import Job, Parameter, Run, matrix_of

# Builds of one job that a person ordered, on machines that were chosen for them: what was asked for, and what has become of it.


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPolicy:
    """What the fleet file says of orders. ``label_parameter``: by which a job is told where to run; ``max_open``: orders at once."""

    label_parameter: str
    max_open: int


class Until(StrEnum):
    """When an order is done: each run has ended, however; all have passed, failing ones replaced; or the first one has."""

    EACH = "each"
    ALL = "all"
    FIRST_SUCCESS = "first-success"


class TryState(StrEnum):
    """``written -> queued -> running -> ended``. What is written may have been sent to Jenkins."""

    WRITTEN = "written"
    QUEUED = "queued"
    RUNNING = "running"
    ENDED = "ended"


class Verdict(StrEnum):
    """How a build of an order ended."""

    PASSED = "passed"
    UNSTABLE = "unstable"  # tests failed
    FAILED = "failed"
    ABORTED = "aborted"  # by a person, a time-out, or a newer build
    LOST = "lost"  # with its machine: it is run again, so often as the order says
    STOPPED = "stopped"  # by us, since the order had ended
    REFUSED = "refused"  # Jenkins did not start it
    IN_DOUBT = "in-doubt"  # nobody can tell whether it ran: it is not started again


FAILURES = frozenset((Verdict.UNSTABLE, Verdict.FAILED, Verdict.ABORTED))


@dataclass(frozen=True, slots=True, kw_only=True)
class Try:
    """One build that was started for an order. ``id``: the value of the parameter by which it is found; times: epoch seconds."""

    id: str
    state: TryState
    at: float  # when it was written, or sent once more
    item: int | None = None  # of the queue
    run: str = ""  # path of the build
    node: str = ""  # on which it was last seen
    began_at: float | None = None  # when it was first seen to run
    ended_at: float | None = None  # when it was first seen to have ended
    took_seconds: float | None = None  # by the controller's clock
    verdict: Verdict | None = None
    why: str = ""  # it ended so, where that is not plain

    @property
    def is_open(self) -> bool:
        """Tell whether it may still run, or come to run."""
        return self.state is not TryState.ENDED


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a run is to take place. ``label``: the expression that only agents of this pool satisfy; ``value``: by which targets vary."""

    controller: str
    pool: str
    label: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One of the runs that were ordered, and what was started for it: its tries, the last one counts."""

    target: Target
    tries: tuple[Try, ...] = ()

    @property
    def last(self) -> Try | None:
        """The try that counts; None: none was started."""
        return self.tries[-1] if self.tries else None

    @property
    def verdict(self) -> Verdict | None:
        """How it ended; None: it has not, or not begun."""
        return self.last.verdict if self.last else None

    def with_last(self, changed: Try) -> Self:
        """Replace its last try."""
        return replace(self, tries=(*self.tries[:-1], changed))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrder:
    """What a person ordered. ``parameters``: names and values, without the label's and our own.

    ``resubmit``: how often a lost build is started again, each; ``replace``: how often failing ones are, all together.
    """

    id: str
    job: str  # full name
    parameters: tuple[tuple[str, str], ...]
    label_parameter: str
    run_parameter: str  # by which builds are found
    by: str
    reason: str
    created_at: float
    parts: tuple[Part, ...]
    until: Until = Until.EACH
    resubmit: int = 1
    replace: int = 0
    vary: str = ""
    ranking: tuple[str, ...] = ()  # why these targets, for people
    cancelled_by: str = ""  # "": nobody has
    ended_at: float | None = None
    version: int = 0  # counts its changes: of two writers the second one loses

    @property
    def is_open(self) -> bool:
        """Tell whether anything is still to be done for it."""
        return self.ended_at is None

    @property
    def is_over(self) -> bool:
        """Tell whether nothing more is wanted of it: what still runs is ended."""
        delivered = self.until is Until.FIRST_SUCCESS and any(one.verdict is Verdict.PASSED for one in self.all_tries())
        return bool(self.cancelled_by) or delivered

    def all_tries(self) -> Iterator[Try]:
        """Go through everything that was started."""
        return (one for part in self.parts for one in part.tries)

    def try_id(self, part: int) -> str:
        """Name the next try of a part."""
        return f"{self.id}.{part + 1}.{len(self.parts[part].tries) + 1}"

    def has_started(self, controller: str, try_id: str, *, item: int, run: str = "") -> bool:
        """Tell whether a build is this try, by what was noted when Jenkins answered; it may be where Jenkins has not answered."""
        tries = (one for part in self.parts if part.target.controller == controller for one in part.tries if one.id == try_id)
        return any(one.item in {None, item} or (run != "" and one.run == run) for one in tries)

    def runs_on(self, controller: str) -> frozenset[str]:
        """Name its builds that run on a controller, by path."""
        found = (one.run for part in self.parts for one in part.tries if part.target.controller == controller)
        return frozenset(run for run in found if run)


def claimed_try(parameters: Iterable[Parameter], own: str) -> tuple[str, str] | None:
    """Return the order and the try that a build's own parameter names; None: none. ``own``: that parameter's name.

    Whether the build is that try is said by the order: people who rebuild it copy the parameter.
    """
    for one in parameters:
        if one.name == own and (named := _TRY_ID.fullmatch(one.value or "")):
            return named[1], named[0]
    return None


_TRY_ID = re.compile(r"(run-[0-9a-f]{1,64})\.[0-9]+\.[0-9]+")


def job_path(name: str) -> str:
    """Return the path of a job by its full name: ``a b/c`` is at ``job/a%20b/job/c``."""
    return "/".join(f"job/{quote(part, safe='')}" for part in name.split("/"))


# Which lost builds are run again, and how often, as the fleet file says it; and what is known of each of them.


@dataclass(frozen=True, slots=True, kw_only=True)
class RerunPolicy:
    """How often a lost build is run again. ``then_on_demand``: once more after that, for which an on-demand agent is launched."""

    times: int = 1
    then_on_demand: bool = False
    jobs: tuple[str, ...] = ("*",)  # patterns of full names

    @property
    def most(self) -> int:
        """How often in all; whatever is lost after that is left to a person."""
        return self.times + self.then_on_demand

    def covers(self, job: str) -> bool:
        """Tell whether lost builds of a job are run again."""
        return any(fnmatchcase(job, pattern) for pattern in self.jobs)


@dataclass(frozen=True, slots=True, kw_only=True)
class LostBuild:
    """A build whose agent has gone, until it is known what became of it. ``how``: the agent went.

    ``others``: what its run had elsewhere then; what it has beside that has begun since.
    """

    controller: str
    run: str  # path, as its executor showed it
    pool: str
    node: str
    instance_id: str
    how: str
    since_at: float
    seen_at: float  # when a look last found nothing wrong
    lost_at: float | None = None  # when the connection was lost, by the controller's clock
    others: tuple[str, ...] = ()
    elsewhere: bool = False  # it has begun something on another agent since
    node_gone_at: float | None = None  # since when we know that Jenkins has no such node any more

    @property
    def key(self) -> str:
        """Its name in the memory."""
        return f"{self.controller} {self.run}"

    @property
    def unit(self) -> str:
        """The path of what is run again: of a matrix the whole, since a configuration cannot be started by itself."""
        return matrix_of(self.run) or self.run


class RerunState(StrEnum):
    """``written -> started``, ``left`` or ``repeated``. What is written may have been sent."""

    WRITTEN = "written"
    STARTED = "started"
    LEFT = "left"  # to a person
    REPEATED = "repeated"  # by a person, so that nothing is started


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerun:
    """The answer to one lost build, written down before Jenkins is asked. ``times``: how often it has been run again, this one included."""

    controller: str
    run: str  # that was lost
    began_at: float  # so that a job of the same name, made anew, is another one
    state: RerunState
    times: int
    on_demand: bool
    created_at: float
    item: int | None = None  # of the queue: what we started, or the person who repeated it
    why: str = ""  # it is left to a person

    @property
    def key(self) -> str:
        """Its name in the store."""
        return rerun_key(self.controller, self.run, self.began_at)

    @property
    def id(self) -> str:
        """The value of the parameter by which its build is found."""
        return f"{self.run}@{self.began_at:.0f}~{self.times}"


def rerun_key(controller: str, run: str, began_at: float) -> str:
    """Return the name of the answer to a lost build."""
    return f"{controller}#{run}@{began_at:.0f}"


def times_of(run_id: str) -> int:
    """Return how often a build had been run again, as this value of its parameter claims; 0 for any other text."""
    number = run_id.rpartition("~")[2] if "@" in run_id else ""
    return int(number) if number.isascii() and number.isdecimal() else 0


def origin_key(controller: str, run_id: str) -> str | None:
    """Return the name of the answer that a build's parameter claims to come from; None: it claims nothing of the kind.

    Whether the build does come from there is said by that answer's queue item: people who rebuild it copy the parameter.
    """
    key = f"{controller}#{run_id.rpartition('~')[0]}"
    return key if times_of(run_id) and len(key.encode()) <= _MOST_BYTES_OF_A_KEY else None


# Of a sort key in DynamoDB. A person may write anything into a parameter.
_MOST_BYTES_OF_A_KEY = 1024


def item_key(controller: str, item: int) -> str:
    """Return the name of a queue item in the memory."""
    return f"{controller}#{item}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RanAgain:
    """A build that was started again, remembered by its queue item: should it be lost, too, this counts. ``run``: that was lost.

    ``by_person``: a person did it, and ``times`` is 0.
    """

    run: str
    times: int
    on_demand: bool
    at: float
    by_person: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftBuild:
    """A lost build that was left to a person, and why."""

    controller: str
    run: str
    why: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LostFacts:
    """What Jenkins and our own store say of one lost build. ``run`` None: Jenkins does not show it.

    ``unit``, ``job``, ``rerun``, ``upstream``: of what would be run again; read once the build has ended. ``origin``: the answer that its
    parameter claims to come from; ``is_ordered``: it is a build of an order, by what that has noted; None: nobody has asked the order that
    its parameter names, if it names any.
    """

    run: Run | None
    unit: Run | None = None
    job: Job | None = None
    rerun: Rerun | None = None
    upstream: tuple[Run, ...] = ()
    origin: Rerun | None = None
    is_ordered: bool | None = None

    @property
    def is_building(self) -> bool:
        """It, or the matrix that it is a part of, has not ended."""
        return any(run.building for run in (self.run, self.unit) if run is not None)

    @property
    def may_have_been_started(self) -> bool:
        """Its answer is written down, and Jenkins may have been asked to start it."""
        return self.rerun is not None and self.rerun.state is RerunState.WRITTEN

    @property
    def has_ended(self) -> bool:
        """It has ended, and what would be run again, too."""
        return self.run is not None and not self.is_building
