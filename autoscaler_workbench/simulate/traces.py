"""Workload traces: read, checked, and cut to a window."""

import csv
import gzip
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from autoscaler.errors import ConfigError
from autoscaler_workbench.simulate.shipped import DATA

MXNET = DATA / "mxnet_stages.csv.gz"
MXNET_DAY = datetime(2018, 9, 4, tzinfo=UTC).timestamp()
_REQUIRED = ("queued_at", "duration_s", "label", "job")
_LONGEST_SECONDS = 31 * 86_400.0
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One allocation of an executor. ``label`` None: any node that takes jobs without a label."""

    queued_at: float
    duration_seconds: float
    label: str | None
    job: str
    run: str
    stage: str
    depends_on: str
    parameters: tuple[tuple[str, str], ...] = ()  # no file has any


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Rows in the order in which they were queued; ``dropped``: rows without a duration; ``in_file``: all rows with one.

    What was queued before ``judged_at`` is a lead-in: it is played, and whoever learns may learn from it, but it is not measured.
    """

    name: str
    start_at: float
    judged_at: float
    rows: tuple[Row, ...]
    dropped: int
    in_file: int = 0


def load_trace(path: Path, *, hours: float, start_at: float | None = None, skip_hours: float = 0.0, lead_in_hours: float = 0.0) -> Trace:
    """Read the rows of a lead-in and of ``hours`` hours more.

    They begin ``skip_hours`` after ``start_at`` (epoch seconds; None: the first row's hour).
    A run counts as a whole when it began inside. `ConfigError` in one line for what is malformed.
    """
    read = list(_rows(path))
    rows = [row for row in read if row is not None]
    if not rows:
        raise ConfigError(f"{path}: has no row with a duration")
    first = start_at if start_at is not None else math.floor(min(row.queued_at for row in rows) / 3600) * 3600.0
    begin = first + skip_hours * 3600
    judged = begin + lead_in_hours * 3600
    kept = sorted(_window(rows, begin, judged + hours * 3600), key=lambda row: row.queued_at)
    if judged > max(row.queued_at for row in rows):
        raise ConfigError(f"{path}: has no row after {datetime.fromtimestamp(judged, UTC):%Y-%m-%d %H:%M} UTC")
    try:
        stages_in_order(kept)
    except CycleError as error:
        run, stage = error.args[1][0]
        raise ConfigError(f"{path}: run {run}: stage {stage} waits for itself (depends_on)") from error
    return Trace(name=path.name, start_at=begin, judged_at=judged, rows=tuple(kept), dropped=len(read) - len(rows), in_file=len(rows))


def busiest_hour(trace: Trace) -> float:
    """Find when the hour begins in which most rows were queued; the first one if there are none."""
    hours = Counter((row.queued_at - trace.start_at) // 3600 for row in trace.rows)
    return trace.start_at + max(hours, key=lambda hour: (hours[hour], -hour), default=0.0) * 3600


def judged_part(trace: Trace) -> Trace:
    """A trace without its lead-in."""
    return replace(trace, start_at=trace.judged_at, rows=tuple(row for row in trace.rows if row.queued_at >= trace.judged_at))


def stages_in_order(rows: Iterable[Row]) -> list[tuple[str, str]]:
    """Order the stages (run, stage) of all runs by what they wait for; `CycleError` where there is no order.

    A row without a run is no stage, and a stage that its run does not have is not waited for.
    """
    stages: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for row in rows:
        if row.run:
            before = stages.setdefault((row.run, row.stage), set())
            if row.depends_on and row.depends_on != row.stage:
                before.add((row.run, row.depends_on))
    return [stage for stage in TopologicalSorter(stages).static_order() if stage in stages]


def _window(rows: list[Row], begin: float, end: float) -> Iterator[Row]:
    began: dict[str, float] = {}
    for row in rows:
        if row.run:
            began[row.run] = min(began.get(row.run, row.queued_at), row.queued_at)
    for row in rows:
        if begin <= began.get(row.run, row.queued_at) < end:
            yield row


def _rows(path: Path) -> Iterator[Row | None]:
    """Read the rows; None for one without a duration."""
    reader = csv.DictReader(_lines(path))
    missing = [name for name in _REQUIRED if name not in (reader.fieldnames or [])]
    if missing:
        raise ConfigError(f"{path}: line 1: column {missing[0]} is missing")
    for raw in reader:
        cells = {key: (value or "").strip() for key, value in raw.items() if isinstance(key, str)}
        yield _row(cells, f"{path}: line {reader.line_num}") if cells["duration_s"] else None


def _lines(path: Path) -> list[str]:
    try:
        raw = path.read_bytes()
        return (gzip.decompress(raw) if raw.startswith(_GZIP) else raw).decode("utf-8-sig").splitlines()
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error})") from error


def _row(cells: dict[str, str], where: str) -> Row:
    if not cells["job"]:
        raise ConfigError(f"{where}: job (''): must not be empty")
    return Row(
        queued_at=_number(cells["queued_at"], "queued_at", where),
        duration_seconds=_duration(cells["duration_s"], where),
        label=cells["label"] or None,
        job=cells["job"],
        run=cells.get("run", ""),
        stage=cells.get("stage", ""),
        depends_on=cells.get("depends_on", ""),
    )


def _duration(text: str, where: str) -> float:
    seconds = _number(text, "duration_s", where)
    if seconds > _LONGEST_SECONDS:
        raise ConfigError(f"{where}: duration_s ({text!r}): must be at most {_LONGEST_SECONDS:.0f} (31 days): no replay would ever end")
    return seconds


def _number(text: str, column: str, where: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number < 0:
        raise ConfigError(f"{where}: {column} ({text!r}): must be a number of seconds, 0 or more")
    return number
