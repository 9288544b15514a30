"""Commands to write a fleet file with: its schema for editors."""

import json

import typer

from autoscaler.config.schema import fleet_schema


def add_commands(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command()(schema)


def schema() -> None:
    """Print the JSON schema of the fleet file, for editors: autoscaler schema > fleet.schema.json."""
    print(json.dumps(fleet_schema(), indent=2))
