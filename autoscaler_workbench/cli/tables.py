"""Tables of answers: a name is never cut, and what is piped is lines of tab-separated values."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from autoscaler_workbench.cli.terminal import Table, print_values, say

_PROSE_AT_LEAST = 16  # columns: a narrower sentence is a tower of words
_GAP = 2

Cell = str | Text
Row = Sequence[Cell]


def for_people() -> bool:
    """Tell whether a person looks at what is printed; else it is piped to a program or a file."""
    return Console().is_terminal


def say_beside(text: str) -> None:
    """Print a note about a table. If the output is piped it goes to stderr, so that the pipe gets the table alone."""
    say(text, stderr=not for_people())


def print_rows(headers: Sequence[str], rows: Iterable[Row], *, prose: Sequence[str] = (), figures: Sequence[str] = ()) -> None:
    """Print rows. Columns of ``prose`` wrap where the terminal is narrow, all others never do; ``figures`` are on the right."""
    table = [list(row) for row in rows]
    console = Console()
    if not console.is_terminal:
        print_values(headers, table)
        return
    columns = [[header, *(str(row[place]) for row in table)] for place, header in enumerate(headers)]
    least = sum(_least_width(column, wraps=column[0] in prose) + _GAP for column in columns)
    console.width = max(console.width, least)
    drawn = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="dim")
    for header in headers:
        drawn.add_column(header, justify="right" if header in figures else "left", no_wrap=header not in prose, overflow="fold")
    for row in table:
        drawn.add_row(*row)
    console.print(drawn)


def _least_width(cells: Sequence[str], *, wraps: bool) -> int:
    """Return how narrow a column may be: where it wraps, as its longest word, which may be a name."""
    lines = [line for cell in cells for line in cell.split("\n")]
    widest = max(map(len, lines))
    return min(widest, max(_PROSE_AT_LEAST, *(len(word) for line in lines for word in line.split(" ")))) if wraps else widest
