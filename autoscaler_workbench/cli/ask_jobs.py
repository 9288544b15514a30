"""Commands that ask about jobs: what is known of them, when they will start and end, and what they cost."""

import re
from typing import Annotated

import typer

from autoscaler.domain.report.costs import By
from autoscaler.errors import ConfigError
from autoscaler_workbench.cli.costs import print_costs, print_csv
from autoscaler_workbench.cli.jobs import print_eta, print_jobs
from autoscaler_workbench.cli.needs import print_csv as print_needs_csv
from autoscaler_workbench.cli.needs import print_needs
from autoscaler_workbench.cli.order_options import Watch
from autoscaler_workbench.cli.request import Request, asking, given

_SPAN = re.compile(r"(\d{1,4})([dw])")
_DAYS = {"d": 1, "w": 7}
_MOST_DAYS = 62  # they are kept for as long


def add_commands(app: typer.Typer) -> None:
    """Add them to the command line."""
    for command in (jobs, eta, needs, costs):
        app.command(command.__name__)(command)


@asking
def jobs(
    request: Request,
    pattern: Annotated[str, typer.Argument(help="A part of a job's name, or a shell pattern: 'release/*'.")] = "*",
    most: Annotated[int, typer.Option(min=1, max=2000, help="At most this many lines.")] = 200,
) -> None:
    """List how long builds wait and take, how they end, what the next one will take, and how good such predictions were."""
    request.ask(print_jobs, watch=False, action="jobs", pattern=pattern, most=most)


@asking
def eta(
    request: Request,
    subject: Annotated[str, typer.Argument(help="A job (its name or URL, or a part of it), or the id of an item of the queue.")],
    watch: Watch = False,
) -> None:
    """Predict when builds of a job will start and end: those that wait or run, or one that would be queued now."""
    if watch:
        request.ask(print_eta, watch=True, action="eta", subject=subject)
        return
    answer = request.deployed.call("operate", {"action": "eta", "subject": subject})
    if not answer["builds"] and not request.as_json:
        raise ConfigError(f"{subject}: no such job or item waits or runs, and no build of it was seen from its beginning to its end")
    request.show(answer, print_eta)


@asking
def needs(
    request: Request,
    pattern: Annotated[str, typer.Argument(help="A part of a job's name, or a shell pattern: 'release/*'.")] = "*",
    most: Annotated[int, typer.Option(min=1, max=2000, help="At most this many lines.")] = 200,
    csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")] = False,
) -> None:
    """List what builds of each job take: memory, processors, GPU; which are heavy, and which never use their GPU."""
    request.ask(print_needs_csv if csv else print_needs, watch=False, action="needs", pattern=pattern, most=most)


@asking
def costs(
    request: Request,
    by: Annotated[By, typer.Option(help="What dollars are grouped by.")] = By.JOB,
    month: Annotated[str | None, typer.Option(metavar="YYYY-MM", help="A calendar month (UTC); default: this one.")] = None,
    since: Annotated[str | None, typer.Option(metavar="7d", help="Instead: the last days (d) or weeks (w), today included (UTC).")] = None,
    day: Annotated[str | None, typer.Option(metavar="YYYY-MM-DD", help="Instead: this day alone, or yesterday (UTC).")] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")] = False,
) -> None:
    """List what jobs cost: their time on agents, and their part of boots, idle and stopped agents. The sum is what all agents cost."""
    days = None if since is None else days_of(since)
    spans = given(month=month, days=days, day=day)
    if len(spans) > 1:
        raise typer.BadParameter("give one of --month, --since and --day", param_hint="--since")
    request.ask(print_csv if csv else print_costs, watch=False, action="costs", by=by.value, **spans)


def days_of(since: str) -> int:
    """Return how many days a span such as 7d or 2w has."""
    written = _SPAN.fullmatch(since.strip().lower())
    days = int(written[1]) * _DAYS[written[2]] if written else 0
    if not 1 <= days <= _MOST_DAYS:
        raise typer.BadParameter(f"({since}): must be 1d to {_MOST_DAYS}d, or weeks such as 2w", param_hint="--since")
    return days
