"""Waits for the end of orders, and shows on the way how far they are."""

import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any, Self

import typer
from rich.console import Console
from rich.live import Live
from rich.text import Text

from autoscaler.errors import TransientError
from autoscaler_workbench.cli.follow import no_echo_of_control_keys
from autoscaler_workbench.cli.request import Request
from autoscaler_workbench.cli.runs_shown import Entry, exit_code, headline, print_orders
from autoscaler_workbench.cli.terminal import plain

EVERY_SECONDS = 5.0
_INTERRUPTED = 130
Ask = Callable[[str], dict[str, Any]]
Sleep = Callable[[float], None]


def tell(request: Request, id_: str) -> dict[str, Any]:
    """Ask for one order."""
    return request.deployed.call("operate", {"action": "runs", "id": id_})


def show_end(request: Request, answer: dict[str, Any], sleep: Sleep, *, ranking: bool) -> None:
    """Wait for the end of orders, show it, and leave with the exit code that tells it."""
    try:
        answer = until_ended(answer, partial(tell, request), sleep)
    except KeyboardInterrupt:
        again = "; ".join(f"autoscaler runs {entry['id']}" for entry in answer["runs"])
        print(f"\rthe builds go on; how far they are: {again}", file=sys.stderr)
        raise typer.Exit(_INTERRUPTED) from None
    request.show(answer, partial(print_orders, ranking=ranking))
    leave(answer)


def leave(answer: dict[str, Any]) -> None:
    """End the command with the exit code that tells how its orders ended."""
    if code := exit_code(answer["runs"]):
        raise typer.Exit(code)


def until_ended(answer: dict[str, Any], ask: Ask, sleep: Sleep) -> dict[str, Any]:
    """Ask for each open order again until none is; return the last answer, in the order of the first.

    ``ask`` reads the order with an id. If it fails for now, it is asked again: nothing of an order depends on it.
    """
    with _Progress() as progress:
        while open_ := [entry["id"] for entry in answer["runs"] if entry["outcome"] is None]:
            progress.show(answer)
            sleep(EVERY_SECONDS)
            for id_ in open_:
                try:
                    answer = _with(answer, ask(id_))
                except TransientError as error:
                    progress.say(f"{error}; asked again in {EVERY_SECONDS:.0f} s")
    return answer


def _with(answer: dict[str, Any], newer: dict[str, Any]) -> dict[str, Any]:
    """Put what is newly known into an answer."""
    known = {entry["id"]: entry for entry in newer["runs"]}
    return answer | {"now_at": newer["now_at"], "runs": [known.get(entry["id"], entry) for entry in answer["runs"]]}


class _Progress:
    """What a person sees meanwhile, on stderr: in a terminal lines that change, else a line for each change."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._said: dict[str, str] = {}
        self._live: Live | None = None
        self._open = ExitStack()

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._open.enter_context(no_echo_of_control_keys())
            self._live = self._open.enter_context(Live(console=self._console, auto_refresh=False, transient=True))
        return self

    def __exit__(self, *raised: object) -> None:
        self._open.close()

    def show(self, answer: dict[str, Any]) -> None:
        """Show how far orders are."""
        if self._live is not None:
            lines = (plain(headline(entry, answer["now_at"])) for entry in answer["runs"])
            self._live.update(Text("\n".join(lines), no_wrap=True, overflow="ellipsis"), refresh=True)
            return
        for entry in answer["runs"]:
            self._say_once(entry)

    def _say_once(self, entry: Entry) -> None:
        if self._said.get(entry["id"]) != entry["summary"]:
            self.say(f"{entry['id']}: {entry['summary']}")
            self._said[entry["id"]] = entry["summary"]

    def say(self, line: str) -> None:
        """Say what happened, once."""
        self._console.print(Text(plain(line)), soft_wrap=True)
