"""Follows a run on the terminal, then tells what came of it in words and pictures."""

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from shutil import which
from signal import SIGINT, signal
from threading import current_thread, main_thread
from time import monotonic
from typing import Any

from rich.console import Console
from rich.live import Live

from autoscaler_workbench.cli.alarms import of_published
from autoscaler_workbench.cli.screen import Screen
from autoscaler_workbench.cli.screen_reasons import Mail
from autoscaler_workbench.cli.story import story
from autoscaler_workbench.cli.terminal import can_draw, ready_to_draw, say
from autoscaler_workbench.report.dashboard.alarms import Published
from autoscaler_workbench.simulate.day import DayAlarm, day_of, write_day
from autoscaler_workbench.simulate.drive import Progress
from autoscaler_workbench.simulate.run import Run

_FRAME_SECONDS = 0.1


def follow(
    progressing: Iterator[Progress], screen: Callable[[Progress], Screen], *, quiet: bool = False, until_interrupted: bool = False
) -> Progress:
    """Play a run to its end, and show it on the way where somebody looks; return its last progress.

    ``until_interrupted``: an interrupt is its end, and not an error.
    """
    last, console, shown_at = Progress(), Console(), 0.0
    # Drawn in this thread: in another one the world would change while it is drawn.
    shown = not quiet and console.is_terminal
    live = Live(console=console, auto_refresh=False, transient=True) if shown else nullcontext()
    with closing_of(progressing), interrupts() as pressed, no_echo_of_control_keys(), live as view:
        for last in progressing:
            if view is not None and monotonic() >= shown_at + _FRAME_SECONDS:
                view.update(screen(last), refresh=True)
                shown_at = monotonic()
            if pressed:
                break
    if pressed and not until_interrupted:
        raise KeyboardInterrupt
    return last


@contextmanager
def interrupts() -> Iterator[list[int]]:
    """Note an interrupt instead of breaking off at once, so that nothing is left half drawn; a second one breaks off."""
    pressed: list[int] = []

    def note(number: int, _frame: object) -> None:
        if pressed:
            raise KeyboardInterrupt
        pressed.append(number)

    if current_thread() is not main_thread():
        yield pressed
        return
    before = signal(SIGINT, note)
    try:
        yield pressed
    finally:
        signal(SIGINT, before)


@contextmanager
def no_echo_of_control_keys() -> Iterator[None]:
    """Keep the terminal from writing ^C into what is drawn: what is erased then would be a line too little."""
    if not sys.stdin.isatty() or sys.platform == "win32":
        yield
        return
    import termios  # noqa: PLC0415 - Windows has none

    before = termios.tcgetattr(sys.stdin)
    quiet = [*before[:3], before[3] & ~termios.ECHOCTL, *before[4:]]
    termios.tcsetattr(sys.stdin, termios.TCSANOW, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSANOW, before)


@contextmanager
def closing_of(progressing: Iterator[Progress]) -> Iterator[None]:
    """Close a run at the end, wherever it is then."""
    try:
        yield
    finally:
        if isinstance(progressing, Generator):
            progressing.close()


def report_directory(out: Path | None, name: str, *, as_json: bool) -> Path | None:
    """Make the directory of a report ready. With --json, or where nothing can be drawn, there is one only if it was asked for."""
    if out is None and (as_json or not can_draw()):
        return None
    directory = out or Path("out") / name
    ready_to_draw(directory)
    return directory


def draw(run: Run, result: dict[str, Any], directory: Path | None, published: Published) -> list[str]:
    """Draw a run, and keep it for the live page; return the lines that say where it is. ``published``: its metrics, if it has any."""
    if directory is None:
        return []
    from autoscaler_workbench.report.run.page import write_report  # noqa: PLC0415 - drawing is an extra, and takes a second to import

    with Console(stderr=True).status("drawing its pictures"):
        page = write_report(run, result, directory)
        day = write_day(day_of(run, _alarms(published)), directory)
    return [f"report: {page}", f"minute by minute: {command()} ui --day {day.parent}"]


def command() -> str:
    """The name under which a person calls the command line."""
    return "autoscaler" if which("autoscaler") else sys.argv[0]


def _alarms(published: Published) -> list[DayAlarm] | None:
    if not published:
        return None
    return [DayAlarm(alarm=one.alarm, says=one.says, runbook=one.runbook, rang=one.rang) for one in of_published(published)]


def tell(run: Run, result: dict[str, Any], last: Progress, proof: str = "", mails: Sequence[Mail] | None = None) -> None:
    """Print what came of a run. ``mails``: what an operator would have got."""
    Console().print(story(run, result, proof, mails))
    for text in last.error_texts[:3]:
        say(f"error: {text}", style="red")
    if run.trace.dropped:
        say(f"{run.trace.dropped} rows of the trace have no duration and were left out")
    if not can_draw():
        say("no pictures: pip install 'jenkins-autoscaler-workbench[demo]'")
