"""Launches and drains EC2 agents of Jenkins. Exit codes: 0 done, 1 refused or failed with one clear line, 2 wrong usage."""

import json
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from autoscaler.config import load_fleet
from autoscaler.domain.demand import explain_match
from autoscaler.domain.labels import LabelSyntaxError, parse
from autoscaler.errors import AutoscalerError, ConfigError
from workbench import live
from workbench.demo import Show
from workbench.traces import MXNET, MXNET_DAY, load_trace

EXAMPLE_FLEET = Path(__file__).parents[1] / "layers" / "fleet" / "fleet.yaml"

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)
FleetFile = Annotated[Path, typer.Option("--fleet", help="The fleet file.", show_default="the MXNet example")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]


@app.command()
def validate(
    file: Annotated[Path | None, typer.Argument(help="The fleet file; --fleet does the same.")] = None,
    fleet: FleetFile = EXAMPLE_FLEET,
    as_json: AsJson = False,  # noqa: FBT002 - a flag of the command line
) -> None:
    """Check a fleet file; what is wrong is said in one line: the key, the value, the rule."""
    checked = load_fleet(file or fleet)
    if as_json:
        pools = {p.name: {"usd_per_hour": p.offerings[0].usd_per_hour, "max_agents": p.max_agents} for p in checked.pools.values()}
        print(json.dumps({"fleet": checked.name, "controllers": list(checked.controllers), "pools": pools}))  # noqa: T201
        return
    table = Table(title=f"fleet {checked.name}: valid", title_justify="left")
    table.add_column("pool", no_wrap=True)
    for name in ("executors", "first offering", "$/h", "max"):
        table.add_column(name, justify="right", no_wrap=True)
    for pool in checked.pools.values():
        offering = pool.offerings[0]
        price = f"{offering.usd_per_hour:.3f}"
        labels = "" if pool.labels == {pool.name} else f"\n  {' '.join(sorted(pool.labels))}"
        table.add_row(pool.name + labels, str(pool.executors), offering.instance_type, price, str(pool.max_agents))
    Console().print(table)


@app.command()
def match(
    expression: Annotated[str, typer.Argument(help="A Jenkins label expression, such as 'linux && !gpu'.")],
    fleet: FleetFile = EXAMPLE_FLEET,
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Say which pools serve a label expression, and why the others do not."""
    checked = load_fleet(fleet)
    try:
        parsed = parse(expression)
    except LabelSyntaxError as error:
        raise ConfigError(f"expression ({expression}): {error}") from error
    reasons = {pool.name: explain_match(pool, checked, parsed) for pool in checked.pools.values()}
    if as_json:
        serving = [name for name, reason in reasons.items() if reason is None]
        others = {name: reason for name, reason in reasons.items() if reason is not None}
        print(json.dumps({"expression": parsed.name, "pools": serving, "others": others}))  # noqa: T201
        return
    table = Table("pool", "serves it", "because", title=parsed.name, title_justify="left")
    for name, reason in reasons.items():
        table.add_row(name, "no" if reason else "yes", reason or "")
    Console().print(table)


@app.command()
def demo(
    trace: Annotated[
        Path | None, typer.Option(help="A workload trace (CSV, may be gzipped).", show_default="2018-09-04 of the MXNet CI")
    ] = None,
    fleet: FleetFile = EXAMPLE_FLEET,
    hours: Annotated[float, typer.Option(min=0.02, max=24 * 62, help="How many hours of it.")] = 24.0,
    seed: Annotated[int, typer.Option(help="Of the world's chance: boot times and the like.")] = 1,
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Run the real functions over a real day, in a world of its own on this machine."""
    start_at = MXNET_DAY if trace is None else None
    loaded = load_trace(trace or MXNET, hours=hours, start_at=start_at)
    log_file = Path(tempfile.mkdtemp(prefix="autoscaler-demo-")) / "functions.log"
    show = Show(loaded, fleet, hours, seed, log_file)
    if as_json:
        last = None
        for _, progress in show.run():
            last = progress
        if last is not None:
            print(json.dumps(show.result(last)))  # noqa: T201
        return
    _show_live(show, log_file, loaded.dropped)


def _show_live(show: Show, log_file: Path, dropped: int) -> None:
    console = Console()
    last = None
    with Live(console=console, refresh_per_second=4, transient=True) as view:
        for stage, last in show.run():
            if last.passes % 5 == 1:
                view.update(live.screen(stage, last))
    if last is not None:
        console.print(live.summary(show.result(last)))
        for text in last.error_texts[:3]:
            console.print(f"error: {text}", style="red", markup=False)
    if dropped:
        console.print(f"{dropped} rows of the trace had no duration and were left out")
    console.print(f"what the functions logged: {log_file}", markup=False, soft_wrap=True)


def main() -> None:
    """Run the command line; our own errors are one line and exit code 1."""
    try:
        app(standalone_mode=True)
    except AutoscalerError as error:
        print(" ".join(str(error).split()), file=sys.stderr)  # noqa: T201
        sys.exit(1)
