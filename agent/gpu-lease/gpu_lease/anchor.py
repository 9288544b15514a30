"""Stay beside a command: pass signals on, stop with it, and end as it ended.

While this process lives and its connection is open, the command may run. When it is killed, its supervisor kills the command: whoever
ends a service or a build step ends its GPU work, too, though that runs in a cgroup of its own.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

from .wire import Connection, GoneError

_PASSED_ON = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGWINCH}
WAITED_FOR = _PASSED_ON | {signal.SIGCHLD}
_BY_THE_KERNEL = 0x80  # SI_KERNEL: from the terminal, which tells the whole foreground group, the command too
_AFTER_SECONDS = 30
_LOOK_SECONDS = 0.1


def stay(command: int, connection: Connection, is_over: Callable[[], bool]) -> int:
    """Return the exit code; where a signal ended the command, end by the same. ``is_over``: asks whether the lease has ended.

    Whoever calls has blocked the signals that are waited for before there was a command.
    """
    while True:
        ended, status = os.waitpid(command, os.WNOHANG | os.WUNTRACED)
        if ended and os.WIFSTOPPED(status):
            _stop_as_well(command)
        elif ended:
            _see_it_cleared(connection, is_over)
            return _as_it_ended(status)
        else:
            told = signal.sigwaitinfo(WAITED_FOR)
            if told.si_signo != signal.SIGCHLD and (told.si_code != _BY_THE_KERNEL or told.si_signo == signal.SIGHUP):
                _pass_on(command, told.si_signo)


def _pass_on(command: int, number: int) -> None:
    try:
        os.kill(command, number)
    except (ProcessLookupError, PermissionError):  # it has just ended, or has become another user's (su, sudo)
        return


def _stop_as_well(command: int) -> None:
    """Stop, so that the shell has its terminal back; go on when it says so."""
    time.sleep(0.05)  # stopped by the terminal, both are; both may be going on again already
    if _state(command) == "T":
        os.kill(os.getpid(), signal.SIGSTOP)
        _pass_on(command, signal.SIGCONT)


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]


def _see_it_cleared(connection: Connection, is_over: Callable[[], bool]) -> None:
    """Wait until what the command left behind is gone and the devices are free: the next command may ask at once."""
    connection.link.settimeout(_AFTER_SECONDS)
    until = time.monotonic() + _AFTER_SECONDS
    try:
        while "over" not in connection.hear():
            continue
    except socket.timeout:
        return
    except GoneError:
        # The supervisor was killed before: whoever looks next finishes its work.
        while not is_over() and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)


def _as_it_ended(status: int) -> int:
    if not os.WIFSIGNALED(status):
        return os.WEXITSTATUS(status)
    number = os.WTERMSIG(status)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    return 128 + number
