"""Options that several commands share, and the trace that they name."""

from pathlib import Path
from typing import Annotated

import typer

from autoscaler.domain.wording import counted
from autoscaler_workbench.cli.terminal import say
from autoscaler_workbench.simulate.traces import MXNET, MXNET_DAY, Trace, load_trace

FleetFile = Annotated[Path, typer.Option("--fleet", help="The fleet file.", show_default="the MXNet example")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]
TraceFile = Annotated[Path | None, typer.Option(help="A workload trace (CSV, may be gzipped).", show_default="2018-09-04 of the MXNet CI")]
Hours = Annotated[float, typer.Option(min=0.02, max=24 * 62, help="How many hours of the trace.")]
Seed = Annotated[int, typer.Option(help="Random seed (boot times and so on).")]
Out = Annotated[
    Path | None,
    typer.Option(
        help="Directory for the report (.html, .png, .svg) and the recorded day (see ui --day).", show_default="out/...; with --json: none"
    ),
]


def the_trace(trace: Path | None, hours: float) -> Trace:
    """Read the trace that was named, or the carried day; say on stderr if a part of the named one is left out."""
    loaded = load_trace(trace or MXNET, hours=hours, start_at=MXNET_DAY if trace is None else None)
    if trace is not None:
        say_part(loaded, f"the first {hours:g} h")
    return loaded


def say_part(trace: Trace, hours: str) -> None:
    """Say on stderr how many jobs of its file a trace has, and which ``hours`` they are; nothing if it has all."""
    if len(trace.rows) < trace.in_file:
        say(f"{trace.name}: {len(trace.rows):,} of {counted(trace.in_file, 'job')}: {hours}; --hours gives more", stderr=True)
