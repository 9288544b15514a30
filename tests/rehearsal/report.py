"""What a rehearsal saw: each step with its time while it runs, and a table at the end."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

_WIDTH = 140
# On a busy machine everything takes longer; only what never comes waits for so long.
_LONGEST_SECONDS = 1200.0
_LOOK_SECONDS = 0.5


class DifferenceError(Exception):
    """Something that the rest of the story builds on did not come."""


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that was checked."""

    step: str
    subject: str
    seen: Any
    expected: Any
    at_seconds: float

    @property
    def differs(self) -> bool:
        return self.seen != self.expected


@dataclass(slots=True)
class Report:
    """Collects what was seen. A difference does not end the story, unless the rest of it waits for what did not come."""

    began: float = field(default_factory=time.monotonic)
    rows: list[Row] = field(default_factory=list)
    _step: str = ""

    def step(self, title: str) -> None:
        """Begin a step of the story."""
        self._step = title.split(":", 1)[0]
        self._print(f"== {title}")

    def note(self, text: str) -> None:
        """Print something that is not checked."""
        self._print(f"   {text}")

    def check(self, subject: str, seen: Any, expected: Any = True) -> None:
        """Hold what was seen against what is expected."""
        row = Row(self._step, subject, seen, expected, self._seconds)
        self.rows.append(row)
        wrong = f"; DIFFERS from {_short(expected)}" if row.differs else ""
        self._print(f"   {subject}: {_short(seen)}{wrong}")

    def until(self, subject: str, look: Callable[[], Any], expected: Any = True) -> None:
        """Look again and again until the expected is there. `DifferenceError` if it does not come."""
        deadline = time.monotonic() + _LONGEST_SECONDS
        while (seen := look()) != expected and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
        self.check(subject, seen, expected)
        if seen != expected:
            raise DifferenceError(f"not within {_LONGEST_SECONDS:g} s, so the story ends here: {subject}")

    @property
    def differences(self) -> list[Row]:
        return [row for row in self.rows if row.differs]

    def table(self) -> str:
        """Everything that was checked, one line each, and what came of it."""
        ended = f"{len(self.rows)} checks in {_time(self._seconds)} min, {len(self.differences)} differ"
        return "\n".join([f"{'time':>5}  {'result':11}  step: what was seen", *map(_line, self.rows), ended])

    def of_differences(self) -> list[str]:
        """What differs, one line each."""
        return [_line(row) for row in self.differences]

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self.began

    def _print(self, text: str) -> None:
        print(f"{_time(self._seconds)} {text}", flush=True)


def _line(row: Row) -> str:
    expected = f" (expected: {_short(row.expected)})" if row.differs else ""
    result = "DIFFERS" if row.differs else "as expected"
    return f"{_time(row.at_seconds)}  {result:11}  {row.step}: {row.subject}: {_short(row.seen)}{expected}"[:_WIDTH]


def _time(seconds: float) -> str:
    return f"{int(seconds) // 60:2}:{int(seconds) % 60:02}"


def _short(value: Any) -> str:
    if value is True or value is False:
        return "yes" if value else "no"
    text = " ".join(str(value).split())
    return text if len(text) <= _WIDTH else text[:_WIDTH] + "..."
