"""Sends an event from a file to a deployed function, as the samples of events/ are sorted: in a folder for each function."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from autoscaler.errors import ConfigError
from autoscaler_workbench.cli.remote import FUNCTIONS
from autoscaler_workbench.cli.request import WHERE, Request, with_request


def add_commands(app: typer.Typer) -> None:
    """Add it to the command line."""
    app.command()(invoke)


@with_request(*WHERE)
def invoke(
    request: Request,
    file: Annotated[Path, typer.Argument(help="A JSON file, such as events/operate/status.json.")],
    function: Annotated[str | None, typer.Option(help="The function.", show_default="as the file's folder")] = None,
) -> None:
    """Send a file of events/ to the function in whose folder it is, and print the answer."""
    name = function or file.resolve().parent.name
    if name not in FUNCTIONS:
        raise ConfigError(f"{file}: is in the folder of no function that may be invoked; give --function, one of {', '.join(FUNCTIONS)}")
    print(json.dumps(request.deployed.call(name, _event(file)), indent=2))


def _event(file: Path) -> dict[str, Any]:
    try:
        event = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file}: {error}") from error
    if not isinstance(event, dict):
        raise ConfigError(f"{file}: must be a JSON object")
    return event
