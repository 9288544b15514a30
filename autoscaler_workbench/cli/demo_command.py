"""``autoscaler demo``: the real handlers for some hours, then the whole day in memory, told in words and pictures."""

import importlib.util
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Annotated, Any

import typer
from rich.console import Console

from autoscaler.config import FleetSettings, load_settings
from autoscaler.domain.report.told import Message
from autoscaler.domain.wording import counted, duration
from autoscaler.errors import ConfigError
from autoscaler_workbench.cli.follow import command, draw, follow, report_directory, tell
from autoscaler_workbench.cli.options import AsJson, FleetFile, Hours, Out, Seed, TraceFile, the_trace
from autoscaler_workbench.cli.remote import Deployed
from autoscaler_workbench.cli.screen import Screen
from autoscaler_workbench.cli.screen_reasons import Mail
from autoscaler_workbench.cli.terminal import say, show
from autoscaler_workbench.fakes.http_fakes.aws.cloudwatch import Published
from autoscaler_workbench.simulate.drive import Progress
from autoscaler_workbench.simulate.fleets import EXAMPLE_FLEET
from autoscaler_workbench.simulate.run import Run, in_memory, prepare
from autoscaler_workbench.simulate.shared import Shared, difference, shared_of
from autoscaler_workbench.simulate.traces import MXNET, busiest_hour, load_trace

app = typer.Typer(add_completion=False)


def add_commands(parent: typer.Typer) -> None:
    """Add the demo to the command line."""
    parent.add_typer(app, name="demo")


PORT = 8646
# So many hours of the day show each kind of step, and are played in half a minute; a slow machine stops there, once it has something
# to compare. Fewer steps prove nothing, unless the whole run has no more.
_HANDLERS_HOURS, _HANDLERS_SECONDS, STEPS_COMPARED = 5.0, 35.0, 20
_INTERRUPTED = 130


@dataclass(slots=True, kw_only=True)
class Demo:
    """What was asked for, and what has come of it so far."""

    trace: Path | None
    fleet_file: Path
    settings: FleetSettings
    hours: float
    seed: int
    broken: set[str]
    quiet: bool
    log_file: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="autoscaler-demo-")) / "functions.log")
    published: Published = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)

    def run(self) -> Run:
        """Make the day."""
        return prepare(the_trace(self.trace, self.hours), self.settings.domain(), hours=self.hours, seed=self.seed)

    def busy_part(self) -> Run:
        """Make some hours of the day, from the busiest one on."""
        whole = the_trace(self.trace, self.hours)
        begin = busiest_hour(whole)
        hours = min(_HANDLERS_HOURS, self.hours - (begin - whole.start_at) / 3600)
        trace = load_trace(self.trace or MXNET, hours=hours, start_at=begin)
        return prepare(trace, self.settings.domain(), hours=hours, seed=self.seed)

    def by_handlers(self) -> Shared:
        """Play the busy hours by the real handlers, over HTTP."""
        from autoscaler_workbench.cli.demo import Show  # noqa: PLC0415 - the local AWS is an extra

        run = self.busy_part()
        show = Show(run=run, settings=self.settings, fleet_file=self.fleet_file, log_file=self.log_file, broken=set(self.broken))
        part = f"1 of 2: {duration(run.hours * 3600)} from the busiest hour on, by the real Lambda handlers over HTTP"
        progressing = _some(show.play(), run, until_rest=run.hours == self.hours)
        screen = partial(Screen, run=run, hours=run.hours, part=part, mails=show.mails)
        last = follow(progressing, lambda at: screen(progress=at), quiet=self.quiet)
        return shared_of(run, last.passes)

    def in_memory_alike(self, passes: int) -> Shared:
        """Play as many passes of the busy hours in memory."""
        run = self.busy_part()
        for progress in in_memory(run, broken=self.broken):
            if progress.passes == passes:
                break
        return shared_of(run, passes)

    def whole_day(self) -> tuple[Run, Progress]:
        """Play the whole of it in memory."""
        run, part = self.run(), f"2 of 2: all {duration(self.hours * 3600)}, by the same code in memory"
        progressing = in_memory(run, broken=self.broken, published=self.published, messages=self.messages)
        screen = partial(Screen, run=run, hours=self.hours, part=part)
        return run, follow(progressing, lambda at: screen(progress=at, mails=self.mails()), quiet=self.quiet)

    def mails(self) -> list[Mail]:
        """Return subject and text of what an operator would have got on the whole day, oldest first."""
        return [(message.subject, message.text) for message in self.messages]


@app.callback(invoke_without_command=True)
def demo(
    context: typer.Context,
    trace: TraceFile = None,
    fleet: FleetFile = EXAMPLE_FLEET,
    hours: Hours = 24.0,
    seed: Seed = 1,
    keep: Annotated[bool, typer.Option("--keep", help="Begin in a busy hour and take commands, until Ctrl-C.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="With --keep: where it takes commands.")] = PORT,
    broken: Annotated[list[str] | None, typer.Option("--broken", help="A pool whose agents never come up; may be repeated.")] = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Play a recorded day: first hours by the real Lambda handlers over HTTP, then all of it in memory."""
    if context.invoked_subcommand is not None:
        return
    settings = load_settings(fleet)
    if unknown := set(broken or ()) - settings.pools.keys():
        raise ConfigError(f"--broken ({min(unknown)}): is not one of the pools ({', '.join(settings.pools)})")
    asked = Demo(trace=trace, fleet_file=fleet, settings=settings, hours=hours, seed=seed, broken=set(broken or ()), quiet=as_json)
    directory = report_directory(out, "demo-kept" if keep else "demo", as_json=as_json)
    try:
        if keep:
            _keep(asked, port, directory, as_json=as_json)
        else:
            _play(asked, directory, as_json=as_json)
    except KeyboardInterrupt:
        print("\rthe demo was stopped before its end", file=sys.stderr)
        raise typer.Exit(_INTERRUPTED) from None


@app.command()
def mend(
    pool: Annotated[str, typer.Argument(help="The pool that --broken broke.")],
    local: Annotated[str, typer.Option(envvar="AUTOSCALER_LOCAL", help="The URL of the demo that is kept.")] = f"http://127.0.0.1:{PORT}",
    as_json: AsJson = False,
) -> None:
    """Repair a pool that --broken broke in a demo that is kept: agents launched from now on come up."""
    answer = Deployed(stack="", local=local).call("mend", {"pool": pool})
    next_one = f"one agent is tried when its breaker is due; at once: autoscaler resume --breaker {pool}"
    show(answer, lambda: say(f"{pool} is mended; {next_one}"), as_json=as_json)


def _play(asked: Demo, directory: Path | None, *, as_json: bool) -> None:
    handlers = asked.by_handlers() if importlib.util.find_spec("moto") else None
    other = difference(handlers, asked.in_memory_alike(handlers.passes)) if handlers else ""
    run, last = asked.whole_day()
    other = other or (too_few(len(handlers.steps), len(run.recording.taken)) if handlers else "")
    result = run.result(last) | {"handlers": handlers.told() | {"same": not other} if handlers else None}
    mails = asked.mails()
    result |= {"mails": [{"subject": subject, "text": text} for subject, text in mails]}
    show(result, lambda: tell(run, result, last, _proof(handlers, other), mails), as_json=as_json)
    _draw(asked, run, result, directory, as_json=as_json)
    if other:
        sys.exit(1)


def _keep(asked: Demo, port: int, directory: Path | None, *, as_json: bool) -> None:
    """Play from a busy hour on by the real handlers alone, until Ctrl-C."""
    if not importlib.util.find_spec("moto"):
        raise ConfigError("--keep: needs the local AWS: pip install 'jenkins-autoscaler-workbench[demo]'")
    from autoscaler_workbench.cli.demo import Kept, Show  # noqa: PLC0415 - the local AWS is an extra

    kept = Kept(port=port)
    begin = busiest_hour(the_trace(asked.trace, asked.hours)) - kept.warm_up * 60
    trace = load_trace(asked.trace or MXNET, hours=asked.hours, start_at=begin)
    run = prepare(trace, asked.settings.domain(), hours=asked.hours, seed=asked.seed)
    played = Show(
        run=run,
        settings=asked.settings,
        fleet_file=asked.fleet_file,
        log_file=asked.log_file,
        broken=asked.broken,
        kept=kept,
        on_end=asked.published.extend,
    )
    below = partial(_commands, port, asked)
    if not Console().is_terminal:
        say("\n".join(below()), stderr=True)
    part = "the real Lambda handlers over HTTP; a simulated minute takes a second"
    screen = partial(Screen, run=run, hours=asked.hours, part=part, mails=played.mails)
    last = follow(played.play(), lambda at: screen(progress=at, below=below()), quiet=as_json, until_interrupted=True)
    result = run.result(last)
    show(result, lambda: tell(run, result, last, mails=played.mails), as_json=as_json)
    _draw(asked, run, result, directory, as_json=as_json)


def _commands(port: int, asked: Demo) -> tuple[str, ...]:
    """What a person may type beside a demo that is kept."""
    pool = next(iter(asked.broken or asked.settings.pools))
    lines = (
        f"export AUTOSCALER_LOCAL=http://127.0.0.1:{port}    # in another terminal, then:",
        f"{command()} status    # or: plan, queue, alarms, doctor; or a live page: ui",
        f"{command()} why {pool}    # or a job, or a node; or: launch {pool} 3, hold --pool {pool}",
    )
    mends = (f"{command()} demo mend {name}    # its agents do not come up" for name in sorted(asked.broken))
    return ("", *lines, *mends, "Ctrl-C ends it, and tells what came of it")


def _some(progressing: Iterator[Progress], run: Run, *, until_rest: bool) -> Iterator[Progress]:
    """The hours of a run, or until its fleet has come to rest; less where they take too long and there are steps to compare."""
    until, stop_at = run.trace.start_at + run.hours * 3600, monotonic() + _HANDLERS_SECONDS
    for progress in progressing:
        yield progress
        over = not until_rest and run.world.timeline.now >= until
        if over or (monotonic() > stop_at and len(run.recording.taken) >= STEPS_COMPARED):
            return


def too_few(compared: int, taken: int) -> str:
    """Say that too few steps were compared to prove anything; "" if there are enough. ``taken``: in the whole run."""
    least = min(STEPS_COMPARED, taken)
    return f"only {counted(compared, 'step')} compared, which proves nothing: at least {least} are needed" if compared < least else ""


def _proof(handlers: Shared | None, other: str) -> str:
    if handlers is None:
        return "The real handlers did not run: pip install 'jenkins-autoscaler-workbench[demo]'."
    if other:
        return f"The real handlers over HTTP and the code in memory could not be shown to be the same: {other}"
    steps, hours = counted(len(handlers.steps), "step"), duration(handlers.seconds)
    return (
        f"{steps} compared: in {hours} from the busiest hour on, the real handlers over HTTP took the same steps as the code in memory, "
        "each for the same reason."
    )


def _draw(asked: Demo, run: Run, result: dict[str, Any], directory: Path | None, *, as_json: bool) -> None:
    lines = draw(run, result, directory, asked.published)
    if directory is not None:
        from autoscaler_workbench.report.dashboard.page import write_dashboard  # noqa: PLC0415 - drawing is an extra

        lines.append(f"dashboard and alarms: {write_dashboard(asked.settings.fleet, asked.published, directory)}")
    if asked.log_file.exists():
        lines.append(f"the functions' log: {asked.log_file}")
    if lines:
        say("\n".join(lines), stderr=as_json)
