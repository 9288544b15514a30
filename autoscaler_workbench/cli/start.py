"""Starts the command line: an interrupt leaves one line, even while it is still being imported."""

import sys

_INTERRUPTED = 130


def main() -> None:
    """Run the command line."""
    try:
        from autoscaler_workbench.cli.main import main as run  # noqa: PLC0415 - a second that may be interrupted

        run()
    except KeyboardInterrupt:
        print("\rinterrupted", file=sys.stderr)
        sys.exit(_INTERRUPTED)
