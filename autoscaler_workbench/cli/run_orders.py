"""Commands that order builds of a job on chosen machines, and tell what has become of them."""

import time
from getpass import getuser
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from autoscaler.errors import AutoscalerError, ConfigError
from autoscaler_workbench.cli import completion, run_options
from autoscaler_workbench.cli.request import Request, asking, new_id, ordering
from autoscaler_workbench.cli.run_file import read_orders, refusal
from autoscaler_workbench.cli.run_waiting import leave, show_end, tell
from autoscaler_workbench.cli.runs_shown import print_list, print_orders

_SHOW = "show"
_CODES = (
    "Exit codes of run --wait and of runs ID: 0 all passed, 3 at least one failed, 4 at least one was lost too often, refused or is in "
    "doubt, 5 cancelled, 6 still open; as everywhere 1 refused or could not be asked, 2 wrong usage."
)
_Id = Annotated[str, typer.Argument(metavar="ID", help="The order's id.", autocompletion=completion.run_orders)]


class _WithoutCommand(TyperGroup):
    """Takes what is no command of its own as the arguments of `show`: ``runs``, ``runs ID`` and ``runs cancel ID`` are one command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the command first that is meant where none is named."""
        return super().parse_args(ctx, args if args and args[0] in self.commands else [_SHOW, *args])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command; that which nobody names is not named in what it says, either."""
        name, command, rest = super().resolve_command(ctx, args)
        return "" if name == _SHOW else name, command, rest


_runs = typer.Typer(cls=_WithoutCommand, help="List orders of builds, or tell of one; cancel one.")


def add_commands(app: typer.Typer) -> None:
    """Add them to the command line."""
    app.command("run", epilog=_CODES)(run)
    _runs.command(_SHOW, epilog=f"To end an order: autoscaler runs cancel ID. {_CODES}")(show)
    _runs.command("cancel")(cancel)
    app.add_typer(_runs, name="runs")


@ordering
@run_options.with_asked
def run(
    request: Request,
    asked: run_options.Asked,
    file: run_options.OrdersFile = None,
    wait: run_options.Wait = False,
    ranking: run_options.Ranking = False,
    request_id: run_options.OrderId = None,
) -> None:
    """Order builds of a job on machines of your choice: once more, on several different ones, or until one succeeds."""
    if file is None:
        if asked.job is None:
            raise typer.BadParameter("give a job, or --file and a file of orders")
        answer = _send(request, asked.event() | {"request_id": request_id or new_id()})
    else:
        _refuse_beside_file(asked, request_id)
        answer = _send_file(request, file)
    if wait and not request.dry_run:
        show_end(request, answer, time.sleep, ranking=ranking)
        return
    request.show(answer, lambda told: print_orders(told, ranking=ranking or request.dry_run))


@asking
def show(
    request: Request,
    id_: Annotated[
        str | None, typer.Argument(metavar="ID", help="The order's id.", show_default="all", autocompletion=completion.run_orders)
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Ask again every 5 seconds, until Ctrl-C; with an id until its end.")
    ] = False,
    most: Annotated[int, typer.Option(min=1, max=500, help="At most this many orders.")] = 50,
    ranking: run_options.Ranking = False,
) -> None:
    """List orders of builds, open ones first; or tell of one how far each of its builds is. The exit code tells how that one ended."""
    if id_ is None:
        request.ask(print_list, watch=watch, action="runs", most=most)
        return
    answer = tell(request, id_)
    if watch:
        show_end(request, answer, time.sleep, ranking=ranking)
        return
    request.show(answer, lambda told: print_orders(told, ranking=ranking))
    leave(answer)


@ordering
def cancel(request: Request, id_: _Id) -> None:
    """End an order: its items of the queue are cancelled, and its builds are stopped."""
    event = {"action": "cancel-run", "id": id_, "reason": request.reason, "by": getuser(), "dry_run": request.dry_run}
    request.show(request.deployed.call("operate", event | {"request_id": new_id()}), print_orders)


def _send(request: Request, fields: dict[str, Any]) -> dict[str, Any]:
    """Send one order; the reason of a file's order goes before that of the command."""
    about = {"action": "run", "by": getuser(), "reason": request.reason, "dry_run": request.dry_run}
    return request.deployed.call("operate", about | fields)


def _refuse_beside_file(asked: run_options.Asked, request_id: str | None) -> None:
    others = [*filter(None, [asked.job]), *asked.options, *(["--request-id"] if request_id else [])]
    if others:
        raise typer.BadParameter(f"has orders of its own; give it without {', '.join(others)}", param_hint="--file")


def _send_file(request: Request, file: Path) -> dict[str, Any]:
    """Order all that a file says, once each of them was found to be right; return the answers as one."""
    orders = [order | {"request_id": new_id()} for order in read_orders(file)]
    answers = _tried(request, file, orders)
    if not request.dry_run:
        answers = _started(request, orders)
    return answers[-1] | {"runs": [entry for answer in answers for entry in answer["runs"]]}


def _tried(request: Request, file: Path, orders: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Send all orders as dry runs; raise an error with a line for each that is refused."""
    answers, refused = [], {}
    for place, order in enumerate(orders):
        try:
            answers.append(_send(request, order | {"dry_run": True}))
        except ConfigError as error:
            refused[place] = str(error)
    if refused:
        raise refusal(file, refused)
    return answers


def _started(request: Request, orders: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Send all orders. If one fails after all, say which were started before it."""
    answers: list[dict[str, Any]] = []
    for number, order in enumerate(orders, 1):
        try:
            answers.append(_send(request, order))
        except AutoscalerError as error:
            ids = ", ".join(entry["id"] for answer in answers for entry in answer["runs"])
            before = f"; those before it were ordered: {ids}" if ids else ""
            raise type(error)(f"order {number} of {len(orders)} ({order['job']}): {error}{before}") from error
    return answers
