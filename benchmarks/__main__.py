"""Measure everything, or what is named, print it, and write it down where that is asked for."""

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from rich.console import Console

from benchmarks import (
    baserock,
    bill,
    burst,
    cold,
    dear,
    eta,
    full,
    made_up,
    monthly,
    needs,
    often,
    parts,
    rerun,
    shared_build,
    sharing,
    shipped,
    short,
    simulation,
    size,
    warm,
    warm_frontier,
)
from benchmarks.figures import Figures, machine, replaced

SECTIONS: dict[str, Callable[[], Iterator[Figures]]] = {
    "size": size.measure,
    "cold": cold.measure,
    "burst": burst.measure,
    "often": often.measure,
    "needs": needs.measure,
    "monthly": monthly.measure,
    "simulation": simulation.measure,
    "baserock": baserock.measure,
    "shared_build": shared_build.measure,
    "made_up": made_up.measure,
    "dear": dear.measure,
    "bill": bill.measure_bill,
    "eta": eta.measure_predictions,
    "short": short.measure,
    "full": full.measure,
    "parts": parts.measure,
    "sharing": sharing.measure,
    "rerun": rerun.measure,
    "warm": warm.measure,
    "shipped": shipped.measure_shipped,
    "warm_frontier": warm_frontier.measure,
}
_FILE_COLUMNS = 160  # what rich takes a file to have is too narrow for these tables
_HEAD = """# Benchmarks

Made by `make bench OUT=docs/benchmarks.md`, and by nothing else; `make bench` prints the same.
Measured on {machine}.
Machines are noisy: figures are medians, and ratios say more than seconds.
"""


def main() -> None:
    """Run the sections."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    arguments.add_argument("sections", nargs="*", metavar="SECTION", help=f"of {', '.join(SECTIONS)}; default: all")
    arguments.add_argument("--trace", type=Path, action="append", default=[], metavar="FILE", help="the simulation plays it, too")
    arguments.add_argument("--out", type=Path, help="write the tables to this page, too; named sections replace only their own")
    asked = arguments.parse_args()
    unknown = [name for name in asked.sections if name not in SECTIONS]
    if unknown:
        arguments.error(f"SECTION ({unknown[0]}): must be one of {', '.join(SECTIONS)}")
    console = Console(width=None if sys.stdout.isatty() else _FILE_COLUMNS)
    console.print(f"measured on {machine()}")
    measured: list[Figures] = []
    sections = SECTIONS | {"simulation": partial(simulation.measure, asked.trace)}
    for name in asked.sections or sections:
        with console.status(f"measuring: {name}"):
            figures = list(sections[name]())
        measured += figures
        for figure in figures:
            figure.show(console)
    if asked.out:
        page = asked.out.read_text(encoding="utf-8") if asked.sections and asked.out.exists() else _HEAD.format(machine=machine())
        asked.out.write_text(replaced(page, measured), encoding="utf-8")


if __name__ == "__main__":
    main()
