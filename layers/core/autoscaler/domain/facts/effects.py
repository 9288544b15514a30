"""What the steps of a pass have brought about, each thing as a small value. `learn` folds them into the memory."""

from dataclasses import dataclass

from autoscaler.domain.facts.fleet import Offering
from autoscaler.domain.facts.started_builds import Rerun

# Of launches.


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One error of a launch. ``offering_key``: "" where EC2 did not say; ``asked``: all offerings of one market in it."""

    code: str
    offering_key: str
    asked: tuple[Offering, ...]
    had: frozenset[str] = frozenset()  # instance types that it got all the same
    met: bool = False  # it got as many as it asked for
    denied: str = ""  # the action for which IAM gives no permission

    @property
    def text(self) -> str:
        """Write EC2's code, and what is not allowed."""
        return f"{self.code} ({self.denied})" if self.denied else self.code


@dataclass(frozen=True, slots=True, kw_only=True)
class NotLaunched:
    """What EC2 refused of one launch."""

    pool: str
    refusals: tuple[Refusal, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRefused:
    """A launch that tries a new image, and that EC2 refused. ``why``: in its words."""

    pool: str
    version: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Had:
    """What one launch brought: a pool, the offerings that it asked for, and the instance types that it got."""

    pool: str
    asked: tuple[Offering, ...]
    types: frozenset[str]


# Of starts and stops.


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedStart:
    """A start that EC2 refused, that ended stopped again, or whose agent did not connect in time. ``why``: in EC2's or its own words.

    ``of_all``: whatever the machine is, EC2 would have said the same. Else each machine counts once.
    """

    pool: str
    instance_id: str
    why: str
    of_all: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """EC2 stops an agent of this pool, as it was asked to."""

    pool: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotStopped:
    """EC2 will never stop this instance. ``why``: in its words."""

    instance_id: str
    pool: str
    why: str


# Of the end of an agent.


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminated:
    """EC2 terminates this instance, as it was asked to. ``refused``: in EC2's words, why it does not, and will not."""

    instance_id: str
    refused: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleRead:
    """What an agent that did not boot has written on its console."""

    instance_id: str
    text: str


# Of any step.


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A step that is given up if it fails too often, by its name in what keeps failing. ``why``: None: it has not failed."""

    controller: str
    key: str
    why: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LostAnswer:
    """The answer for a lost build. ``lost``: its name in the memory."""

    lost: str
    rerun: Rerun


Effect = NotLaunched | ImageRefused | Had | FailedStart | Stopped | NotStopped | Terminated | ConsoleRead | Tried | LostAnswer
