"""Commands that show a deployment as a page: its dashboard, and the live page of the fleet."""

import time
from pathlib import Path
from typing import Annotated

import typer

from autoscaler.errors import ConfigError
from autoscaler_workbench.cli.past import StackPast, past_of
from autoscaler_workbench.cli.recorded import RecordedDay
from autoscaler_workbench.cli.request import WHERE, Request, with_request
from autoscaler_workbench.cli.terminal import ready_to_draw, say
from autoscaler_workbench.cli.ui import DEMO_COSTS_SECONDS, DEMO_EVERY_SECONDS, EVERY_SECONDS, DeployedSource, serve, serve_day
from autoscaler_workbench.simulate.day import read_day


def add_commands(app: typer.Typer) -> None:
    """Add them to the command line."""
    for command in (dashboard, ui):
        app.command()(command)


@with_request(*WHERE)
def dashboard(
    request: Request,
    out: Annotated[Path, typer.Option(help="With --local: the directory for dashboard.html.")] = Path("out") / "dashboard",
) -> None:
    """Print the URL of the stack's dashboard; for a running demo, draw its dashboard with firing alarms."""
    if request.local is None:
        if request.deployed.stack_parameters().get("MakeDashboard") == "no":
            raise ConfigError(f"--stack ({request.deployed.stack}): has no dashboard; it was deployed with MakeDashboard=no")
        say(request.deployed.output("DashboardUrl"))
        return
    published = request.deployed.published()
    if not published:
        raise ConfigError(f"--local ({request.local}): nothing was published there yet")
    ready_to_draw(out)
    from autoscaler_workbench.report.dashboard.page import write_dashboard  # noqa: PLC0415 - drawing is an extra

    say(str(write_dashboard(dict(published[0][1].dimensions)["Fleet"], published, out)))


@with_request(*WHERE)
def ui(
    request: Request,
    day: Annotated[Path | None, typer.Option(help="Instead a recorded day: the --out of simulate or demo.", show_default="live")] = None,
    port: Annotated[int, typer.Option(min=1, max=65_535, help="Where it listens, on this machine only.")] = 8765,
) -> None:
    """Serve a page of the fleet on this machine: queue, agents, dollars, what was done, alarms, why, and orders."""
    if day is not None:
        serve_day(RecordedDay(read_day(day)), port)
    elif request.local is None:
        serve(DeployedSource(request.deployed, StackPast(request.deployed, time.time), time.time), port, every_seconds=EVERY_SECONDS)
    else:
        deployed = request.deployed
        source = DeployedSource(deployed, lambda: past_of(deployed.published()), time.time, DEMO_COSTS_SECONDS)
        serve(source, port, every_seconds=DEMO_EVERY_SECONDS)
