"""What people were told of, and one message to them. Data only: every function that reads the state reads this."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Something that people were told of, and that is not over. ``title``: of the message that told them; ``told_at``: the last time."""

    title: str
    since_at: float
    seen_at: float
    told_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Since when a condition is there, and when a look saw it last."""

    since_at: float
    seen_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What people were told of, by its name.

    ``spans``: conditions that people are told of once they have lasted; ``month``: the last one whose costs they know, as 2026-10.
    """

    version: int = 0
    month: str = ""
    troubles: Mapping[str, Trouble] = field(default_factory=dict)
    spans: Mapping[str, Span] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message: a subject of ASCII, and lines of text. ``about``: the name of its trouble."""

    about: str
    subject: str
    text: str


# Troubles of this name have no end that anybody could be told of: what a person did about them is not known here.
LOST = "lost/"


@dataclass(frozen=True, slots=True)
class Seen:
    """A trouble that is there now. ``runbook``: page and heading; ``try_it``: a command that says more; ``daily``: told again each day.

    ``cure``: when to run which command that ends it at once; "" if there is none.
    """

    title: str
    text: str
    runbook: str
    try_it: str
    daily: bool = False
    cure: str = ""
