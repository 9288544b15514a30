"""The command line, run in this process."""

import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout

import pytest

from autoscaler_workbench.cli.main import main


def autoscaler(*arguments, typed=None):
    """Run the command line as a process of its own would, but for its imports. ``typed``: what a person answers."""
    stdout, stderr, code = io.StringIO(), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(stdout), redirect_stderr(stderr):
        patch.setattr(sys, "argv", ["autoscaler", *map(str, arguments)])
        patch.setattr(sys, "stdin", io.StringIO(typed or ""))
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
    return subprocess.CompletedProcess(arguments, code, stdout.getvalue(), stderr.getvalue())
