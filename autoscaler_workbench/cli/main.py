"""Launches and drains EC2 agents of Jenkins. Exit codes: 0 done, 1 refused or failed with one clear line, 2 wrong usage."""

import sys
from typing import Annotated

import typer

from autoscaler.errors import AutoscalerError
from autoscaler_workbench.cli.commands import Commands

_LONGEST_LINE = 2000  # of an error

app = typer.Typer(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help=__doc__,
)


def _print_version(asked: bool) -> None:  # noqa: FBT001 - typer calls it so
    if asked:
        from importlib import metadata  # noqa: PLC0415 - for this answer only

        print(f"autoscaler {metadata.version('jenkins-autoscaler-workbench')}")
        raise typer.Exit


@app.callback(help=__doc__)
def options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.", show_default=False)
    ] = False,
) -> None:
    """Take the options that come before a command."""


def main() -> None:
    """Run the command line; our own errors are one line and exit code 1, an interrupt is one line and 130."""
    try:
        app(standalone_mode=True)
    except SystemExit as ended:
        # typer makes an interrupt exit code 130, without a word; a command that has said its own line raises that itself.
        if isinstance(ended.__context__, typer.Exit) and isinstance(ended.__context__.__cause__, KeyboardInterrupt):
            print("\rinterrupted", file=sys.stderr)
        raise
    except AutoscalerError as error:
        from autoscaler.domain.wording import shortened  # noqa: PLC0415 - for an error only
        from autoscaler_workbench.cli.terminal import plain  # noqa: PLC0415

        for line in getattr(error, "lines", [str(error)]):  # a fleet file may have several errors
            print(shortened(plain(" ".join(line.split())), _LONGEST_LINE), file=sys.stderr)
        sys.exit(1)
