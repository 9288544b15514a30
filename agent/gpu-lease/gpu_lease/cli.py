"""The command line."""

from __future__ import annotations

import argparse
import json
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from . import client, report, supervisor
from .cgroups import SLICE, Cgroups, mounted
from .devices import LISTED, Places, found
from .errors import NotPossibleError
from .machine import RealMachine
from .state import State
from .wire import SOCKET

_STATE = Path("/run/gpu-lease/state")
_DESCRIPTION = "Hand out this machine's graphics cards: a command holds its devices while it lives, and others wait in order."
_Commands = Any  # argparse has no public name for it


def main(words: Sequence[str] | None = None) -> int:
    """Do what the words say; return the exit code."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a person who interrupts wants no traceback
    try:
        options = _options(sys.argv[1:] if words is None else list(words))
        return int(options.does(options))
    except NotPossibleError as error:
        client.say(str(error))
        return error.code


def _options(words: list[str]) -> argparse.Namespace:
    """Take the words apart; whatever stands behind -- is the command's."""
    own, command = (words[: words.index("--")], words[words.index("--") + 1 :]) if "--" in words else (words, [])
    options = _parser().parse_args(own)
    if command and not hasattr(options, "command"):
        raise NotPossibleError(f"only run takes a command: {' '.join(command)}", 64)
    if command:
        options.command = [*options.command, "--", *command] if options.command else command
    return options


def _run(options: argparse.Namespace) -> int:
    if not options.command:
        raise NotPossibleError("which command? gpu-lease run --count 1 -- COMMAND ...", 64)
    request = {"count": options.count, "kind": options.kind}
    return client.run(options.socket, options.command, request, options.wait, quiet=options.quiet)


def _list(options: argparse.Namespace) -> int:
    devices = found(Places(options.devices))
    if options.json:
        print(
            json.dumps(
                [{"id": d.id, "kind": d.kind, "vendor": d.vendor, "model": d.model, "pci": d.pci, "nodes": d.nodes} for d in devices]
            )
        )
    elif devices:
        print(report.devices_as_text(devices))
    if not devices:
        raise NotPossibleError("this machine has no device")
    return 0


def _status(options: argparse.Namespace) -> int:
    seen = client.status(options.socket)
    print(json.dumps(seen, indent=2) if options.json else report.as_text(seen))
    return 0


def _serve(options: argparse.Namespace) -> int:
    supervisor.serve(options.socket, _machine(options))
    return 0


def _supervise(options: argparse.Namespace) -> int:
    with socket.socket(fileno=0) as link:
        return supervisor.served(link, _machine(options))


def _machine(options: argparse.Namespace) -> RealMachine:
    return RealMachine(State(options.state), Cgroups(mounted(), options.slice), Places(options.devices))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise NotPossibleError(f"{message} (--help lists what there is)", 64)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="gpu-lease", description=_DESCRIPTION)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = _command(commands, "run", _run, "wait for free devices, and run a command with them")
    run.add_argument("--count", type=int, default=1, help="how many devices, all of one vendor")
    run.add_argument(
        "--kind", default="", help="an architecture (gfx1030, sm_86), a vendor (amd, nvidia) or a model; without it any device"
    )
    run.add_argument("--wait", type=float, metavar="SECONDS", help="end with code 75 when no device was free by then; without it wait on")
    run.add_argument("--quiet", action="store_true", help="do not say what is waited for and held")
    run.add_argument("command", nargs=argparse.REMAINDER, help="after --, the command and its words")
    list_ = _command(commands, "list", _list, "list the devices of this machine")
    status = _command(commands, "status", _status, "tell which devices are held, by whom and since when, and who waits")
    for command in (list_, status):
        command.add_argument("--json", action="store_true", help="for programs")
    for command in (run, status):
        command.add_argument("--socket", type=Path, default=SOCKET, help=argparse.SUPPRESS)
    supervisors = _add_those_of_root(commands)
    for command in (list_, *supervisors):
        command.add_argument(
            "--devices", type=Path, default=LISTED, help="file of devices, believed instead of the drivers where it is there"
        )
    return parser


def _add_those_of_root(commands: _Commands) -> list[argparse.ArgumentParser]:
    serve = _command(commands, "serve", _serve, "start a supervisor for each who asks, where no systemd does it; for root")
    serve.add_argument("--socket", type=Path, default=SOCKET, help="where to listen")
    supervise = _command(commands, "supervise", _supervise, "serve the one connection on standard input, as systemd passes it; for root")
    for command in (serve, supervise):
        command.add_argument("--state", type=Path, default=_STATE, help="folder of tickets, leases and locks")
        command.add_argument("--slice", default=SLICE, help="what cgroups are called; each folder has its own")
    return [serve, supervise]


def _command(commands: _Commands, name: str, does: object, says: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(name, help=says, description=says)
    command.set_defaults(does=does)
    return command


if __name__ == "__main__":
    sys.exit(main())
