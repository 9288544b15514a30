"""What the pages show, and to whom orders go."""

from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What the last hours, or a whole day, were like. Times are epoch seconds.

    ``spend``: dollars an hour, each from its instant on; where two are further apart than ``every_seconds``, nobody measured in between.
    ``alarms``: ``alarm``, ``state``, ``since_at``, ``says``, ``runbook``, and ``rang``: pairs of from and until, None for still.
    ``unknown``: in one line, what of it could not be read, and why.
    """

    begins_at: float
    ends_at: float
    spend: tuple[tuple[float, float], ...]
    every_seconds: float
    alarms: list[dict[str, Any]]
    unknown: str = ""


class Looking(Protocol):
    """Answers what is true at one moment. Errors are those of `autoscaler.errors`, one line each."""

    def overview(self) -> dict[str, Any]:
        """Answer with ``status``, ``agents``, ``queue``, ``events``, ``holds`` and ``numbers`` of one look, as `operate` writes them.

        ``costs``: what jobs cost this month, likewise; ``problem`` in it says why that is not known.
        """

    def past(self) -> Past:
        """Tell what was before."""

    def why(self, subject: str) -> list[str]:
        """Explain a job, a node, an instance or a pool, a fact a line."""


class Source(Looking, Protocol):
    """A deployment, or a demo that takes commands."""

    def order(self, verb: str, facts: dict[str, Any]) -> str:
        """Carry out ``hold``, ``resume``, ``launch`` or ``drain``; say in one line what is true now."""


class Recorded(Protocol):
    """A day that was recorded: any of its moments can be looked at, and nothing can be ordered."""

    @property
    def title(self) -> str:
        """Say what was recorded."""

    @property
    def begins_at(self) -> float:
        """Its first moment."""

    @property
    def ends_at(self) -> float:
        """Its last moment."""

    @property
    def busiest_at(self) -> float:
        """The moment to begin with: when most was spent."""

    def at(self, when: float) -> Looking:
        """Look at a moment."""
