"""What ``why`` promises of a job that waits: when it starts, or why nobody knows."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

_STARTS = re.compile(
    r"\b(?:would start|starts|is to start)\b (?:at once|in (?P<span>(?:\d+ (?:s|min|h|d)\b ?)+)|(?:at|by) (?P<at>[^;]+? UTC))"
)
_RANGE = "(four in five: "
_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_NO_IDEA = "no running or booting agent can take it"
_CAUSES = ("not done: ", "it counts once", "could not be read", "Jenkins says", "nothing is launched", "nothing is terminated")
# The answer names a cause, unless it only says of each pool that nothing is free.
_ANSWER = re.compile(r"^\d+ \w+ waits?: (?:every executor of \S+ is [^;.]*; )*(?!every executor )")


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """``seconds``: until it starts; None: no time is given. ``at_once``: it says so. ``has_cause``: it names one. ``text``: all of it."""

    seconds: float | None
    at_once: bool
    has_cause: bool
    text: str


def claim_of(lines: Sequence[str], now: float) -> Claim:
    """Read the first promise. What is told of an order was promised when it came; a range that four in five keep to is no promise."""
    text = "\n".join(line for line in lines if not line.startswith("run-"))
    found = _STARTS.search("\n".join(line for line in text.splitlines() if _RANGE not in line))
    seconds = None if found is None else 0.0
    if found and found["span"]:
        seconds = sum(float(count) * _UNITS[unit] for count, unit in re.findall(r"(\d+) (s|min|h|d)\b", found["span"]))
    elif found and found["at"]:
        seconds = _until(found["at"], now)
    explained = bool(text) and (_NO_IDEA not in text or bool(_ANSWER.match(text)) or any(cause in text for cause in _CAUSES))
    return Claim(seconds=seconds, at_once=bool(found) and seconds == 0.0, has_cause=explained, text=text)


def _until(text: str, now: float) -> float | None:
    """Read a time of day, with or without its date."""
    found = re.search(r"(?:(\d{4}-\d\d-\d\d) )?(\d\d):(\d\d)", text)
    if found is None:
        return None
    today = datetime.fromtimestamp(now, UTC)
    day = datetime.fromisoformat(found[1]).date() if found[1] else today.date()
    at = datetime(day.year, day.month, day.day, int(found[2]), int(found[3]), tzinfo=UTC).timestamp()
    return max(0.0, at - now if found[1] or at >= now - 60.0 else at + 86_400.0 - now)
