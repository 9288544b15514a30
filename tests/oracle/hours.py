"""What was decided, hour by hour: written down, read again, and compared. Knows nothing of the project."""

import gzip
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path

_WITH_LINES, _WITHOUT = "=", "~"  # begin the line that ends an hour
_AROUND = 3  # lines that are shown before and after the first that differs


@dataclass(frozen=True, slots=True, kw_only=True)
class Hour:
    """What one hour of a run decided. ``lines``: a step each; ``totals``: what the run has come to at its end.

    ``lines`` is None where only the digest may be kept (a trace whose licence is not known).
    """

    digest: str
    totals: str
    lines: tuple[str, ...] | None = None


def hour_of(lines: Iterable[str], totals: str) -> Hour:
    """Sum an hour up."""
    kept = tuple(lines)
    return Hour(digest=sha256("\n".join((*kept, totals)).encode()).hexdigest()[:16], totals=totals, lines=kept)


def write(path: Path, hours: Iterable[Hour], *, with_lines: bool) -> None:
    """Keep a run; the same run gives the same bytes."""
    text = "\n".join(line for hour in hours for line in _written(hour, with_lines=with_lines))
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def read(path: Path) -> list[Hour]:
    """Read a run that was kept."""
    hours: list[Hour] = []
    lines: list[str] = []
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        if line.startswith((_WITH_LINES, _WITHOUT)):
            mark, digest, totals = line.split(" ", 2)
            hours.append(Hour(digest=digest, totals=totals, lines=tuple(lines) if mark == _WITH_LINES else None))
            lines = []
        else:
            lines.append(line)
    return hours


def first_difference(expected: Iterable[Hour], got: Iterable[Hour]) -> list[str]:
    """Name the first hour that differs, with what was expected there and what was got; nothing where all are the same."""
    for number, (before, now) in enumerate(zip(expected, got, strict=False)):
        if before.digest != now.digest:
            return [f"hour {number} differs", *_shown(before, now)]
    return []


def counts(hours: Iterable[Hour]) -> Mapping[tuple[str, str], int]:
    """How often each kind of step was taken, and for which reason."""
    found: dict[tuple[str, str], int] = {}
    for hour in hours:
        for line in hour.lines or ():
            _, kind, *_, reason = line.split(" ")
            found[kind, reason] = found.get((kind, reason), 0) + 1
    return found


def _written(hour: Hour, *, with_lines: bool) -> Iterator[str]:
    if with_lines:
        yield from hour.lines or ()
    yield f"{_WITH_LINES if with_lines else _WITHOUT} {hour.digest} {hour.totals}"


def _shown(before: Hour, now: Hour) -> Iterator[str]:
    if before.lines is not None:
        pairs = list(zip_longest(before.lines, now.lines or (), fillvalue="(nothing)"))
        first = next((at for at, (old, new) in enumerate(pairs) if old != new), len(pairs))
        yield from (f"      same  {old}" for old, _ in pairs[max(0, first - _AROUND) : first])
        for old, new in pairs[first : first + _AROUND]:
            yield from (f"  expected  {old}", f"       got  {new}")
    yield from (f"  expected  {before.totals}", f"       got  {now.totals}")
