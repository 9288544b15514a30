"""Trying one thing in a forked child: the world stands still in the parent, and every child begins from the same instant."""

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

TESTS = Path(__file__).parents[1]
# Where cases are many and alike, `make test` tries one in so many, and `make slow` each.
ONE_IN = "1" if os.environ.get("WHOLE") else "8"


def paths() -> str:
    """Where a process of the tests finds everything, as ``PYTHONPATH`` has it."""
    return os.pathsep.join([str(TESTS), str(TESTS.parent), str(TESTS.parent / "layers" / "core")])


def in_a_process(module: str, *arguments: str) -> dict:
    """Run a module of the tests that forks as a process of its own, and read the JSON document that it prints."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": paths()}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def in_a_child(act: Callable[[], str]) -> str:
    """Run it in a child; return what it says, or how it broke. Nothing that it does to the world is seen here."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        try:
            said = act()
        except BaseException as error:  # noqa: BLE001 - the child's boundary: whatever it was, the parent is told
            said = told(error)
        os.write(write_end, said.encode())
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, encoding="utf-8") as pipe:
        said = pipe.read()
    _, status = os.waitpid(pid, 0)
    return said or (f"the process ended with {status}" if status else "")


def told(error: BaseException) -> str:
    """Where it broke, and how."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{place.name}: {place.line} ({type(error).__name__}: {str(error)[:400]})"
