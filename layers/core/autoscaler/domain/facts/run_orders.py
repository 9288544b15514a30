"""Builds of one job that a person ordered, on machines that were chosen for them: what was asked for, and what has become of it."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self
from urllib.parse import quote

from autoscaler.domain.facts.runs import Parameter


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

    def ended_by(self, person: str) -> Self:
        """Note who wants no more of it."""
        return replace(self, cancelled_by=person)

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
