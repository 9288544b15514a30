"""Reads the queue: in one answer, or, if that is too large, without Jenkins' reasons first, and then the reasons in parts.

While agents are idle that no job without a label may use, Jenkins names each of them in the reason of each such job: 5,000 jobs before
500 agents are 200 MB. Of most jobs the label is told beside the reason; only pipelines' parts need it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jenkins

from autoscaler.adapters.jenkins.parse import ID_AND_WHY, QUEUE_TREE, QUEUE_TREE_WITH_PARAMETERS, WITHOUT_WHY, entries_of, needs_why
from autoscaler.adapters.jenkins.session import Answer, JenkinsSession, Patience, TooLargeError
from autoscaler.errors import NoAnswerError

QUEUE = jenkins.Q_INFO.partition("?")[0]
# Read into memory it takes five times as much, and a function has 512 MB by default.
WHOLE_BYTES = 32 * 1024 * 1024
# A queue that has not been read by then is read in parts, if it is large; there is time left for that.
WHOLE_SECONDS = 5.0
_PART_BYTES, _MOST_PART_BYTES = 4 * 1024 * 1024, 16 * 1024 * 1024
# No item needs less, and none is expected to need less than where the whole was too large.
_LEAST_ITEM_BYTES = 100
# What nodes and state may take, of the time of a look.
_LEFT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class QueueAnswer:
    """The queue as one answer, or several, told it. ``whys``: Jenkins' reasons by item, where they came apart from the items."""

    answer: Answer
    sessions: frozenset[str | None]
    body: object
    whys: dict[int, str] | None = None
    in_parts: str = ""  # why it was read in parts, and how much of it; "" where it came in one answer


def read_whole_or_in_parts(session: JenkinsSession, monotonic: Callable[[], float], until: float, *, with_parameters: bool) -> QueueAnswer:
    """Read the queue until then, by the session's clock. Parts are made of one list of the items: none is there twice, none is missing."""
    tree = QUEUE_TREE_WITH_PARAMETERS if with_parameters else QUEUE_TREE
    try:
        whole = session.get(QUEUE, tree, Patience(WHOLE_BYTES, WHOLE_SECONDS))
    except TooLargeError as error:
        return _in_parts(session, monotonic, until - _LEFT_SECONDS, tree, str(error))
    return QueueAnswer(whole, _sessions(whole), whole.json())


def _in_parts(session: JenkinsSession, monotonic: Callable[[], float], until: float, tree: str, problem: str) -> QueueAnswer:
    items = session.get(QUEUE, tree.replace(*WITHOUT_WHY))
    body = items.json()
    entries = entries_of(body, "items")
    parts = _Parts(session, monotonic, until, entries)
    parts.read()
    needed = sum(needs_why(entry) for entry in entries)
    summary = f"{problem}; of {len(entries)} items {needed} do not tell their label, and of {len(parts.whys)} Jenkins' reason was read"
    return QueueAnswer(items, _sessions(items) | parts.sessions, body, parts.whys, summary)


@dataclass(slots=True)
class _Parts:
    """Reads the reasons of the items that need one, those first which are next: at the end of the list."""

    session: JenkinsSession
    monotonic: Callable[[], float]
    until: float
    entries: list[Any]
    whys: dict[int, str] = field(default_factory=dict)
    sessions: frozenset[str | None] = frozenset()
    _places: dict[Any, int] = field(default_factory=dict)
    _moved: int = 0  # how far the list has moved since it was read: new items come first
    _item_bytes: float = 0.0

    def read(self) -> None:
        """Read until everything is there, or no time is left. What is not read waits for the next look."""
        self._places = {entry["id"]: place for place, entry in enumerate(self.entries) if needs_why(entry)}
        needed = list(self._places.values())
        self._item_bytes = max(WHOLE_BYTES / max(1, len(self.entries)), _LEAST_ITEM_BYTES)
        end: int | None = None  # open: whatever has come since moved the next ones beyond the end
        while needed and self.monotonic() < self.until:
            first = self._first_of_part(needed)
            try:
                self._read_part(first, end)
            except TooLargeError:
                if self._count == 1:
                    return
                self._item_bytes *= 4
            except NoAnswerError:
                return
            else:
                needed = [place for place in needed if place < first]
                end = needed[-1] + 1 if needed else 0

    def _first_of_part(self, needed: list[int]) -> int:
        return next(place for place in needed if place > needed[-1] - self._count)

    @property
    def _count(self) -> int:
        """How many items one part is likely to hold."""
        return max(1, int(_PART_BYTES / self._item_bytes))

    def _read_part(self, first: int, end: int | None) -> None:
        start, last = max(0, first + self._moved), "" if end is None else max(0, end + self._moved)
        tree = f"items[{ID_AND_WHY}]{{{start},{last}}}"
        self.session.allow_seconds(max(0.0, self.until - self.monotonic()))
        part = self.session.get(QUEUE, tree, Patience(_MOST_PART_BYTES))
        entries = [entry for entry in entries_of(part.json(), "items") if isinstance(entry, dict) and isinstance(entry.get("id"), int)]
        self.sessions |= _sessions(part)
        self.whys |= {entry["id"]: entry["why"] for entry in entries if isinstance(entry.get("why"), str)}
        # A few short reasons do not say that all are short.
        self._item_bytes = max(len(part.body) / max(1, len(entries)), self._item_bytes / 4, _LEAST_ITEM_BYTES)
        for place, entry in enumerate(entries):
            if (before := self._places.get(entry["id"])) is not None:
                self._moved = start + place - before
                return


def _sessions(answer: Answer) -> frozenset[str | None]:
    return frozenset({answer.session})
