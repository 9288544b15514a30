"""Writes texts of others to a terminal as they are: names of jobs, labels and reasons are no markup, and move no cursor."""

import importlib.util
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from autoscaler.errors import ConfigError


def plain(text: object) -> str:
    """Make a text safe to print: white space becomes a space, control and bidirectional characters a question mark."""
    return "".join(letter if letter.isprintable() else " " if letter.isspace() else "?" for letter in str(text))


class Table(RichTable):
    """A table that prints texts literally; only a `Text` of our own has a style."""

    def __init__(self, *headers: str, title: str | None = None, **options: Any) -> None:
        """Make a table with these columns."""
        super().__init__(*headers, title=None if title is None else _lines(title), **options)

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        """Add a row."""
        super().add_row(*(_lines(cell) if isinstance(cell, str) else cell for cell in cells), **options)


def say(text: str, *, style: str = "", stderr: bool = False) -> None:
    """Print a text, its lines as they are; the terminal wraps them."""
    Console(stderr=stderr).print(_lines(text), style=style or None, soft_wrap=True)


def print_table(headers: Sequence[str], rows: Iterable[Iterable[object]], *, figures: bool = False, **options: Any) -> None:
    """Print a table; what is piped is lines of tab-separated values, and the title is on stderr.

    ``figures``: all but its first column are figures, on the right.
    """
    if not Console().is_terminal:
        if title := options.get("title"):
            say(title, stderr=True)
        print_values(headers, rows)
        return
    table = Table(title_justify="left", **options)
    for place, header in enumerate(headers):
        table.add_column(header, justify="right" if figures and place else "left", no_wrap=figures)
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else str(cell) for cell in row))
    Console().print(table)


def print_values(headers: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Print lines of tab-separated values."""
    for row in (headers, *rows):
        print("\t".join(plain(cell) for cell in row))


def can_draw() -> bool:
    """Tell whether what draws is installed: it is an extra."""
    return all(importlib.util.find_spec(name) for name in ("altair", "jinja2", "vl_convert"))


def ready_to_draw(out: Path) -> None:
    """Make the directory of a report, and fail before a long run if it cannot be drawn."""
    try:
        import autoscaler_workbench.report.html  # noqa: F401, PLC0415 - drawing is an extra
    except ImportError as error:
        raise ConfigError(f"--out ({out}): drawing needs the extra 'report', and {error.name} is not installed") from error
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--out ({out}): {error.strerror or error}") from error


def show(answer: Any, print_it: Callable[[], None], *, as_json: bool) -> None:
    """Print an answer as one JSON object where that is asked for, else for people."""
    if as_json:
        print(json.dumps(answer))
    else:
        print_it()


def _lines(text: str) -> Text:
    return Text("\n".join(plain(line) for line in text.split("\n")))
