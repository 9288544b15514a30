"""Processes of tests: a child for each case, begun from the same instant, and a server that forks them.

A process with threads, such as pytest's, must not fork. So tests ask a server: ``python -m support.forks`` reads requests as lines of JSON,
``[module, arguments]``, calls ``answer`` of that module and prints what it returns.
"""

import importlib
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
_BROKE = "broke"


def paths() -> str:
    """The ``PYTHONPATH`` of a process that imports what tests import."""
    root = TESTS.parent
    return os.pathsep.join(map(str, (TESTS, root, root / "layers" / "core", root / "agent" / "gpu-lease")))


@contextmanager
def serving() -> Iterator[Callable[..., Any]]:
    """Run a server; yield a function that asks it: a module's name and arguments for its ``answer``."""
    command, environment = [sys.executable, "-m", "support.forks"], {**os.environ, "PYTHONPATH": paths()}
    with subprocess.Popen(command, cwd=TESTS.parent, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def ask(module: str, *arguments: Any) -> Any:
            process.stdin.write(json.dumps([module, arguments]) + "\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            assert _BROKE not in answer, answer[_BROKE]
            return answer["answer"]

        yield ask
        process.stdin.close()


def fork() -> tuple[int | None, str]:
    """Fork. The child gets the pipe to pass to `leave`. The parent waits, and gets None and the child's words."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        return write_end, ""
    os.close(write_end)
    with os.fdopen(read_end, encoding="utf-8") as pipe:
        said = pipe.read()
    _, status = os.waitpid(pid, 0)
    return None, said or (f"the process ended with {status}" if status else "")


def leave(pipe: int, said: str) -> None:
    """End this child, and say so much to its parent."""
    os.write(pipe, said.encode())
    os._exit(0)


def in_a_child(act: Callable[[], str]) -> str:
    """Act in a child; return what it says, or how it broke. The parent's world stays as it is."""
    pipe, said = fork()
    if pipe is not None:
        try:
            said = act()
        except BaseException as error:  # noqa: BLE001 - the child's boundary: the parent reports every error
            said = told(error)
        leave(pipe, said)
    return said


def told(error: BaseException) -> str:
    """Where it broke, and how."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{place.name}: {place.line} ({type(error).__name__}: {str(error)[:400]})"


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # nothing else gets between the answers
    for line in sys.stdin:
        module, arguments = json.loads(line)
        try:
            answer = {"answer": importlib.import_module(module).answer(*arguments)}
        except Exception:  # noqa: BLE001 - the server's boundary: who asked reports every error
            answer = {_BROKE: traceback.format_exc()}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
