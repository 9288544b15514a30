"""Writes texts of others to a terminal as they are: names of jobs, labels and reasons are no markup, and move no cursor."""

from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table as RichTable
from rich.text import Text


def plain(text: object) -> str:
    """Keep what can be seen of a text: white space becomes a space; control characters and what turns lines around a question mark."""
    return "".join(letter if letter.isprintable() else " " if letter.isspace() else "?" for letter in str(text))


class Table(RichTable):
    """A table whose texts are what they are, line by line; only a `Text` of our own has a style."""

    def __init__(self, *headers: str, title: str | None = None, **options: Any) -> None:
        """Make a table with these columns."""
        super().__init__(*headers, title=None if title is None else _lines(title), **options)

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        """Add a row."""
        super().add_row(*(_lines(cell) if isinstance(cell, str) else cell for cell in cells), **options)


def say(text: str, *, style: str = "", stderr: bool = False) -> None:
    """Print a text, its lines as they are; the terminal wraps them."""
    Console(stderr=stderr).print(_lines(text), style=style or None, soft_wrap=True)


def _lines(text: str) -> Text:
    return Text("\n".join(plain(line) for line in text.split("\n")))
