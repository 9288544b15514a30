"""Print how large the layer is and how much of it two fleets walk through: `make walk`.

``--record`` writes the figures down. ``--figures`` prints them alone, which takes half of the time.
"""

import gc
import logging
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from autoscaler.telemetry import logger
from autoscaler_workbench.cli.init_draft import draft_pools
from autoscaler_workbench.cli.init_read import Machine, Seen
from autoscaler_workbench.cli.init_text import FirstFile, text_of
from ratchet import doors
from ratchet.record import FILE, exceeded, measured, read, write
from ratchet.statements import Size, by_folder, by_room, total
from ratchet.walk import PLAIN, Walk, loaded, walks


def main() -> int:
    gc.disable()  # a third of the time, in a process that soon ends
    logger.setLevel(logging.ERROR)
    console = Console(width=110)
    plain, modules = walks(PLAIN), loaded(PLAIN)
    if "--figures" not in sys.argv:
        _print_tables(console, plain, modules)
    now, before = measured(plain, modules[1]), read()
    for name, figure in now.items():
        console.print(f"{name}: {figure:,} ({f'record {before[name]:,}' if name in before else 'no record'})")
    if "--record" in sys.argv:
        write(now)
        doors.write_list(doors.imported())
        console.print(f"recorded in {FILE.name} and {doors.LIST.name}")
        return 0
    complaints = exceeded(now, before)
    for line in complaints:
        console.print(line, soft_wrap=True)
    return 1 if complaints else 0


def _print_tables(console: Console, plain: dict[str, Walk], modules: tuple[int, int]) -> None:
    console.print(_sizes("the layer", by_room()), _sizes("the tests", by_folder()))
    console.print(_walks("A fleet of one plain pool", plain, modules))
    with TemporaryDirectory() as folder:
        file = Path(folder) / "fleet.yaml"
        file.write_text(file_of_init(), encoding="utf-8")
        console.print(_walks("A fleet file as `init` writes it", walks(file), loaded(file)))


def file_of_init() -> str:
    """Write the fleet file that `init` writes for a Jenkins with a Linux agent and one with a GPU."""
    labels = {"linux-1": ("linux",), "gpu-1": ("gpu", "linux")}
    machines = tuple(Machine(name=name, labels=of, executors=2, system="Linux (amd64)") for name, of in labels.items())
    drafts = draft_pools(Seen(version="2.504.3", machines=machines, clouds=(), asked_for=frozenset(), unknown=()))
    return text_of(FirstFile(fleet="f", url="http://jenkins.example/", secret="jenkins/main", pools=drafts.pools, head=[]))


def _sizes(title: str, sizes: dict[str, Size]) -> Table:
    table = Table(title=f"Statements of {title}, without docstrings", title_justify="left")
    for name in ("", "files", "lines", "statements", "of which imports", "docstrings"):
        table.add_column(name, justify="right" if name else "left")
    for name, size in [*sizes.items(), ("together", total(sizes.values()))]:
        table.add_row(name, *(f"{count:,}" for count in (size.files, size.lines, size.statements, size.imports, size.docstrings)))
    return table


def _walks(title: str, taken: dict[str, Walk], modules: tuple[int, int]) -> Table:
    imported, after = modules
    table = Table(title=f"{title}: scale_up loads {imported} modules, after a pass {after}", title_justify="left")
    for name in ("", "modules entered", "functions entered", "statements entered"):
        table.add_column(name, justify="right" if name else "left")
    for name, walk in taken.items():
        table.add_row(name, str(walk.modules), str(walk.functions), str(walk.statements))
    return table


if __name__ == "__main__":
    sys.exit(main())
