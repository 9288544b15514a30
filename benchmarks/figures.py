"""Figures as tables: on the terminal, and in Markdown."""

import os
import platform
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median
from textwrap import fill
from time import perf_counter

from rich.console import Console
from rich.table import Table

_PAGE_COLUMNS = 138


@dataclass(frozen=True, slots=True)
class Figures:
    """One table: ``text`` says what was measured and how, and what the figures mean."""

    title: str
    text: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def show(self, console: Console) -> None:
        """Print it."""
        table = Table(title=self.title, title_justify="left", caption=self.text, caption_justify="left")
        for place, column in enumerate(self.columns):
            table.add_column(column, justify="right" if place else "left", overflow="fold")
        for row in self.rows:
            table.add_row(*row)
        console.print(table)

    def markdown(self) -> str:
        """Write it."""
        lines = [
            f"## {self.title}",
            "",
            fill(self.text, _PAGE_COLUMNS, break_long_words=False, break_on_hyphens=False),
            "",
            _line(self.columns),
            _line("---:" if place else "---" for place in range(len(self.columns))),
            *(_line(row) for row in self.rows),
        ]
        return "\n".join(lines) + "\n"


def replaced(page: str, figures: Iterable[Figures]) -> str:
    """Replace the tables of a page that have these titles; tables that the page lacks go to its end."""
    made = {figure.title: figure.markdown() for figure in figures}
    head, *blocks = re.split("^(?=## )", page, flags=re.MULTILINE)
    sections = {block.partition("\n")[0].removeprefix("## "): block.rstrip("\n") + "\n" for block in blocks} | made
    return "\n".join((head.rstrip("\n") + "\n", *sections.values()))


def seconds_of(act: Callable[[], object], *, runs: int) -> float:
    """Median wall-clock seconds of several runs."""
    return median(_once(act) for _ in range(runs))


def machine() -> str:
    """Name what this was measured on."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores ({platform.machine()}), {memory:.0f} GiB, {platform.system()}, Python {platform.python_version()}"


def seconds(value: float) -> str:
    """Three digits that mean something."""
    return f"{value:.1f} s" if value >= 10 else f"{value:.2f} s" if value >= 1 else f"{value * 1000:.0f} ms"


def count(value: float) -> str:
    """Thousands apart."""
    return f"{value:,.0f}"


def megabytes(value: float) -> str:
    """Bytes as MB."""
    return f"{value / 1e6:.2f} MB"


def _once(act: Callable[[], object]) -> float:
    began = perf_counter()
    act()
    return perf_counter() - began


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
