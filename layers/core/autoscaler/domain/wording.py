"""Wording: times, durations, dollars, counts and texts of others as people read them."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from math import floor, log10

LATEST = 32_503_680_000.0  # the year 3000: what is stored may be beyond what a calendar has
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_CENTS_BELOW = 1000.0
_MOST_DIGITS = 12


def moment(at: float) -> str:
    """Write a time by date and clock: "2026-11-26 22:40 UTC"."""
    return f"{datetime.fromtimestamp(min(at, LATEST), UTC):%Y-%m-%d %H:%M} UTC"


def duration(seconds: float) -> str:
    """Write seconds in the two units that matter: "45 s", "3 min 20 s", "25 min", "12 h 28 min", "3 d 4 h"."""
    whole = max(0, round(seconds))
    if whole < 2 * _MINUTE:
        return f"{whole} s"
    if whole < 10 * _MINUTE:
        return _two(whole, _MINUTE, "min", 1, "s")
    whole = round(whole / _MINUTE) * _MINUTE
    if whole < _HOUR:
        return f"{whole // _MINUTE} min"
    return _two(whole, _HOUR, "h", _MINUTE, "min") if whole < 2 * _DAY else _two(whole, _DAY, "d", _HOUR, "h")


def _two(whole: int, larger: int, its_name: str, smaller: int, name: str) -> str:
    rest = whole % larger // smaller
    return f"{whole // larger} {its_name}" + (f" {rest} {name}" if rest else "")


def dollars(usd: float) -> str:
    """Write dollars, with cents below a thousand: "$0.42", "$9,940"; less than a cent is not nothing."""
    if 0.0 < usd < 0.005:
        return f"${usd:.{1 - floor(log10(usd))}f}"
    return f"${usd:,.2f}" if usd < _CENTS_BELOW else f"${usd:,.0f}"


def dollars_apart(one: float, other: float) -> tuple[str, str]:
    """Write two amounts of dollars that a sentence compares: with more digits if they would look the same."""
    return _apart(one, other, lambda usd, digits: f"${usd:,.{digits}f}", 2)


def durations_apart(one: float, other: float) -> tuple[str, str]:
    """Write two durations that a sentence compares: in seconds if they would look the same."""
    first, second = duration(one), duration(other)
    if first != second:
        return first, second
    return _apart(one, other, lambda seconds, digits: f"{seconds:,.{digits}f} s", 0)


def figures_apart(one: float, other: float) -> tuple[str, str]:
    """Write two numbers that a sentence compares: with as many digits as tell them apart, and no more than they have."""
    return _apart(one, other, lambda number, digits: _without_zeros(f"{number:,.{digits}f}"), 2)


def figure(number: float) -> str:
    """Write a number with two digits after the point, where it has any."""
    return _without_zeros(f"{number:,.2f}")


def _apart(one: float, other: float, write: Callable[[float, int], str], digits: int) -> tuple[str, str]:
    while write(one, digits) == write(other, digits) and one != other and digits < _MOST_DIGITS:
        digits += 1
    return write(one, digits), write(other, digits)


def _without_zeros(number: str) -> str:
    return number.rstrip("0").rstrip(".") if "." in number else number


def counted(number: int, noun: str, nouns: str = "") -> str:
    """Write a number with its noun: "1 job", "3 jobs"; ``nouns``: where another letter than s makes many of it."""
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def sentence(text: str) -> str:
    """Begin a text with a capital letter."""
    return f"{text[:1].upper()}{text[1:]}"


def size(amount: float) -> str:
    """Write bytes as people say them: 12.3 GiB, 512 MiB."""
    return f"{amount / 2**30:.1f} GiB" if amount >= 2**30 else f"{amount / 2**20:.0f} MiB"


def lines_of(lines: Sequence[str], most: int) -> list[str]:
    """Return so many lines, and one that says how many more there are."""
    return [*lines[:most], *([f"and {len(lines) - most} more"] if len(lines) > most else [])]


def listed(names: Sequence[str], most: int = 3) -> str:
    """Write names: "cpu-3", "cpu-3 and cpu-4", "cpu-3, cpu-4, cpu-5 and 17 more"."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most:,} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


LONGEST_DETAIL, LONGEST_RESULT = 500, 2000  # letters of a reason's text; of what came of a step, which may name many agents


def shortened(text: str, most: int = 100) -> str:
    """Write a text from outside as one printable line: its beginning, and how long it is."""
    if len(text) <= most and text.isprintable():
        return text
    beginning = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text[:most])
    return beginning if len(text) <= most else f"{beginning}... ({len(text):,} characters)"


def clock(at: float) -> str:
    """Write a time of the day, in UTC: "14:05 UTC"."""
    return f"{datetime.fromtimestamp(min(at, LATEST), UTC):%H:%M} UTC"


def resume_command(pool: str) -> str:
    """Write the command that has a broken pool launch again, once a person has mended what was wrong."""
    return f"autoscaler resume --breaker {pool}"


def once_mended(pool: str) -> str:
    """Write when to run that command."""
    return f"Once it is mended: {resume_command(pool)}"


def end_command(ids: Iterable[str]) -> str:
    """Write the command by which a person ends instances that are not ours to end."""
    return f"aws ec2 terminate-instances --instance-ids {' '.join(ids)}"
