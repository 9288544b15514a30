"""Which lost builds are run again, and how often, as the fleet file says it; and what is known of each of them."""

from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

from autoscaler.domain.facts.runs import Job, Run, matrix_of


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
