"""Launches and drains EC2 agents of Jenkins. Exit codes: 0 done, 1 refused or failed with one clear line, 2 wrong usage."""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import boto3
import typer
import yaml
from botocore.exceptions import BotoCoreError
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.live import Live
from rich.progress import MofNCompleteColumn, Progress

from autoscaler.adapters.launch_templates import check_templates
from autoscaler.config import load_fleet, load_settings
from autoscaler.domain.facts.fleet import Fleet
from autoscaler.domain.labels import LabelSyntaxError, parse
from autoscaler.domain.situation.demand import explain_match
from autoscaler.errors import AutoscalerError, ConfigError
from workbench.cli import operate
from workbench.cli.assignments import PHYSICS, load_with, physics_of, read_assignments
from workbench.cli.demo import Show
from workbench.cli.proposal_tables import tables_of
from workbench.cli.screen import screen, summary
from workbench.cli.terminal import Table, plain, say
from workbench.experiment.compare import Workload, carried_workloads, entries
from workbench.experiment.compare import compare as run_comparison
from workbench.experiment.experiment import OURS, POLICIES, Experiment, play
from workbench.experiment.history import Bounds, connect, read_history
from workbench.experiment.tune import TuningTask
from workbench.experiment.tune import tune as run_tuning
from workbench.fakes.http_fakes.aws.cloudwatch import Published
from workbench.simulate.drive import MINUTE
from workbench.simulate.drive import Progress as Tick
from workbench.simulate.fleets import EXAMPLE_FLEET, fleet_for
from workbench.simulate.run import Run, in_memory, prepare
from workbench.simulate.traces import MXNET, MXNET_DAY, Trace, load_trace

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)
FleetFile = Annotated[Path, typer.Option("--fleet", help="The fleet file.", show_default="the MXNet example")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]
TraceFile = Annotated[Path | None, typer.Option(help="A workload trace (CSV, may be gzipped).", show_default="2018-09-04 of the MXNet CI")]
Hours = Annotated[float, typer.Option(min=0.02, max=24 * 62, help="How many hours of it.")]
Seed = Annotated[int, typer.Option(help="Of the world's chance: boot times and the like.")]
PhysicsOptions = Annotated[
    list[str] | None, typer.Option("--physics", metavar="KEY=VALUE", help=f"Change the world: {', '.join(PHYSICS)}.")
]
Out = Annotated[
    Path | None, typer.Option(help="Directory for the report: report.html, .png and .svg.", show_default="out/...; with --json: none")
]


operate.add_commands(app)


@app.command()
def validate(
    file: Annotated[Path | None, typer.Argument(help="The fleet file; --fleet does the same.")] = None,
    fleet: FleetFile = EXAMPLE_FLEET,
    live_too: Annotated[bool, typer.Option("--live", help="Ask AWS about the launch templates, too.")] = False,  # noqa: FBT002
    as_json: AsJson = False,  # noqa: FBT002 - a flag of the command line
) -> None:
    """Check a fleet file; what is wrong is said in one line: the key, the value, the rule."""
    checked = load_fleet(file or fleet)
    if live_too:
        _validate_live(checked, as_json=as_json)
        return
    if as_json:
        pools = {p.name: {"usd_per_hour": p.offerings[0].usd_per_hour, "max_agents": p.max_agents} for p in checked.pools.values()}
        print(json.dumps({"fleet": checked.name, "controllers": list(checked.controllers), "pools": pools}))  # noqa: T201
        return
    table = Table(title=f"fleet {checked.name}: valid", title_justify="left")
    table.add_column("pool", no_wrap=True)
    for name in ("executors", "first offering", "$/h", "max"):
        table.add_column(name, justify="right", no_wrap=True)
    for pool in checked.pools.values():
        offering = pool.offerings[0]
        price = f"{offering.usd_per_hour:.3f}"
        labels = "" if pool.labels == {pool.name} else f"\n  {' '.join(sorted(pool.labels))}"
        table.add_row(pool.name + labels, str(pool.executors), offering.instance_type, price, str(pool.max_agents))
    Console().print(table)


def _validate_live(fleet: Fleet, *, as_json: bool) -> None:
    """Say what is unsafe about the launch templates; exit code 1 where anything is."""
    try:
        client = boto3.client("ec2")
    except BotoCoreError as error:
        raise ConfigError(f"AWS cannot be asked: {error}") from error
    findings = check_templates(fleet, client)
    if as_json:
        print(json.dumps({"fleet": fleet.name, "findings": findings}))  # noqa: T201
    else:
        table = Table("pool", "launch template", "finding", title=f"fleet {fleet.name}: launch templates", title_justify="left")
        for name, found in findings.items():
            pool = fleet.pools[name]
            table.add_row(name, f"{pool.launch_template} {pool.launch_template_version}", "\n".join(found) or "safe")
        Console().print(table)
    if any(findings.values()):
        sys.exit(1)


@app.command()
def match(
    expression: Annotated[str, typer.Argument(help="A Jenkins label expression, such as 'linux && !gpu'.")],
    fleet: FleetFile = EXAMPLE_FLEET,
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Say which pools serve a label expression, and why the others do not."""
    checked = load_fleet(fleet)
    try:
        parsed = parse(expression)
    except LabelSyntaxError as error:
        raise ConfigError(f"expression ({expression}): {error}") from error
    reasons = {pool.name: explain_match(pool, checked, parsed) for pool in checked.pools.values()}
    if as_json:
        serving = [name for name, reason in reasons.items() if reason is None]
        others = {name: reason for name, reason in reasons.items() if reason is not None}
        print(json.dumps({"expression": parsed.name, "pools": serving, "others": others}))  # noqa: T201
        return
    table = Table("pool", "serves it", "because", title=parsed.name, title_justify="left")
    for name, reason in reasons.items():
        table.add_row(name, "no" if reason else "yes", reason or "")
    Console().print(table)


@app.command()
def demo(  # noqa: PLR0913, PLR0917 - the options of a command
    trace: TraceFile = None,
    fleet: FleetFile = EXAMPLE_FLEET,
    hours: Hours = 24.0,
    seed: Seed = 1,
    keep: Annotated[bool, typer.Option("--keep", help="Half of the hours on, slow down and take commands, until Ctrl-C.")] = False,  # noqa: FBT002
    broken: Annotated[list[str] | None, typer.Option("--broken", help="A pool whose agents never come up; may be repeated.")] = None,
    out: Out = None,
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Run the real functions over a real day, in a world of its own on this machine."""
    settings = load_settings(fleet)
    if unknown := set(broken or ()) - settings.pools.keys():
        raise ConfigError(f"--broken ({min(unknown)}): is not one of the pools ({', '.join(settings.pools)})")
    log_file = Path(tempfile.mkdtemp(prefix="autoscaler-demo-")) / "functions.log"
    run = prepare(_load(trace, hours), load_fleet(fleet), hours=hours, seed=seed)
    directory = _directory(out, "demo", as_json=as_json)
    kept: list[Published] = []
    show = Show(run, settings, fleet, log_file, _say_where() if keep else None, frozenset(broken or ()), kept.append)
    _follow(run, show.play(), {}, directory, as_json=as_json)
    if directory is not None:
        from workbench.report.dashboard.page import write_dashboard  # noqa: PLC0415 - drawing is an extra

        page = write_dashboard(settings.fleet, kept[-1], directory)
        say(f"the dashboard and its alarms: {page}", stderr=as_json)
    if not as_json:
        say(f"what the functions logged: {log_file}")


@app.command()
def simulate(  # noqa: PLR0913, PLR0917 - the options of a command
    trace: TraceFile = None,
    fleet: FleetFile = EXAMPLE_FLEET,
    policy: Annotated[str, typer.Option(help=f"What decides: {', '.join(POLICIES)}.")] = OURS,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", metavar="[POOL.]KEY=VALUE", help="Change a setting of the fleet file; may be repeated.")
    ] = None,
    every: Annotated[float, typer.Option(min=5, max=3600, help="Seconds from one look to the next.")] = MINUTE,
    hours: Hours = 24.0,
    seed: Seed = 1,
    physics: PhysicsOptions = None,
    out: Out = None,
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Run a trace in memory: the same decisions as the functions', many times faster than the demo."""
    world = physics_of(read_assignments(physics or [], "--physics"))
    if policy != OURS:
        settings = read_assignments(assignments or [], "--set")
        loaded = _load(trace, hours)
        _simulate_rival(
            Experiment(trace=loaded, fleet=load_settings(fleet), hours=hours, policy=policy, settings=settings, seed=seed, physics=world),
            as_json=as_json,
        )
        return
    changed = load_with(fleet, assignments or [])
    run = prepare(_load(trace, hours), changed.domain(), hours=hours, seed=seed, physics=world)
    told = {"policy": policy, "setting": " ".join(assignments or [])}
    _follow(run, in_memory(run, every=every), told, _directory(out, "simulate", as_json=as_json), as_json=as_json)


@app.command()
def compare(  # noqa: PLR0913, PLR0917 - the options of a command
    out: Annotated[Path, typer.Option(help="Directory for results.csv, pools.csv and report.html; what stands there is not done again.")],
    traces: Annotated[
        list[Path] | None, typer.Option("--trace", help="Workload traces; may be repeated.", show_default="those carried")
    ] = None,
    fleet: Annotated[Path | None, typer.Option(help="The fleet file for --trace.", show_default="guessed from the trace's labels")] = None,
    policies: Annotated[list[str] | None, typer.Option("--policy", help="May be repeated.", show_default="all")] = None,
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="How many worlds each run is played in.")] = 5,
    hours: Hours = 24 * 7,
    skip: Annotated[float, typer.Option(min=0, help="Hours of each trace that are left out, before the lead-in.")] = 0.0,
    lead_in: Annotated[float, typer.Option(min=0, help="Hours that are played before those that are measured: to learn from.")] = 0.0,
    sweep: Annotated[bool, typer.Option(help="Turn each policy's main knob, too.")] = True,  # noqa: FBT002
    physics: PhysicsOptions = None,
    jobs: Annotated[int, typer.Option(min=-1, help="Processes; -1: one for each core.")] = -1,
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Play traces by every policy in the same world, and say who is cheaper and who waits less."""
    world = physics_of(read_assignments(physics or [], "--physics"))
    workload = partial(Workload, fleet=fleet, hours=hours, skip_hours=skip, lead_in_hours=lead_in, physics=world)
    given = [workload(file=file) for file in traces or []]
    workloads = given or carried_workloads(hours, skip_hours=skip, lead_in_hours=lead_in, physics=world)
    todo = entries(workloads, policies or POLICIES, seeds, sweep=sweep)
    write_report = _drawing_of_comparison(out)
    with Progress(*Progress.get_default_columns(), MofNCompleteColumn(), transient=True, disable=as_json) as progress:
        task = progress.add_task("runs", total=len(todo))
        for done, _ in run_comparison(todo, out, jobs=jobs):
            progress.update(task, completed=done)
    page = write_report()
    if as_json:
        print(json.dumps({"runs": len(todo), "results": str(out / "results.csv"), "report": str(page)}))  # noqa: T201
        return
    say(f"{len(todo)} runs: {out / 'results.csv'}\nreport: {page}")


@app.command()
def history(  # noqa: PLR0913, PLR0917 - the options of a command
    url: Annotated[str, typer.Argument(help="A Jenkins, such as https://jenkins.example.org/.")],
    out: Annotated[Path, typer.Option(help="The trace to write: what simulate, compare and tune read.")],
    user: Annotated[str | None, typer.Option(envvar="JENKINS_USER", show_default="anybody")] = None,
    token: Annotated[str | None, typer.Option(envvar="JENKINS_TOKEN", help="That user's API token.", show_default=False)] = None,
    ca_bundle: Annotated[
        str | None, typer.Option(envvar="JENKINS_CA_BUNDLE", help="The only authorities to trust for TLS.", show_default=False)
    ] = None,
    days: Annotated[float, typer.Option(min=0.1, max=366, help="How far back.")] = 28.0,
    requests: Annotated[int, typer.Option(min=1, help="How many requests at most.")] = 5000,
    pause: Annotated[float, typer.Option(min=0, help="Seconds between two of them.")] = 0.25,
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Read a Jenkins' build history as a trace, a request at a time: to tune on, to compare with, to simulate."""
    bounds = Bounds(since=time.time() - days * 86_400, requests=requests, pause_seconds=pause)
    past = read_history(connect(url, user, token, ca_bundle, time.monotonic), bounds, time.sleep)
    past.write(out)
    told = {name: value for name, value in asdict(past).items() if name != "rows"} | {"builds": len(past.rows), "trace": str(out)}
    if as_json:
        print(json.dumps(told))  # noqa: T201
        return
    say(f"{len(past.rows)} builds of {past.jobs} jobs, in {past.requests} requests: {out}")
    for count, what in (
        (past.pipelines, "pipeline jobs are not in it: on which agents their stages ran stands in their logs only"),
        (
            past.left_out,
            "builds are not in it: running yet, on the controller itself, or on a machine that is gone, of a job without a label",
        ),
        (past.cut_short, f"it is not all: --requests ({requests}) was reached"),
    ):
        if count:
            say(what if count is True else f"{count} {what}")


@app.command()
def tune(  # noqa: PLR0913, PLR0917 - the options of a command
    out: Annotated[Path, typer.Option(help="An empty directory for fleet.yaml as proposed, results.csv and report.html.")],
    trace: TraceFile = None,
    fleet: Annotated[Path | None, typer.Option(help="The fleet file.", show_default="guessed from the trace's labels")] = None,
    hours: Hours = 24 * 7,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="How many worlds each setting is played in.")] = 2,
    every: Annotated[float, typer.Option(min=5, max=3600, help="Seconds from one look to the next.")] = MINUTE,
    p95: Annotated[
        float | None, typer.Option(min=0, help="The p95 wait in seconds that must be kept.", show_default="what costs least")
    ] = None,
    jobs: Annotated[int, typer.Option(min=-1, help="Processes; -1: one for each core.")] = -1,
    as_json: AsJson = False,  # noqa: FBT002
) -> None:
    """Propose executors and agents to keep, the size of machines, and the price of waiting: what would have cost least over a trace."""
    write_report = _drawing_of_comparison(out)
    if (out / "results.csv").exists():
        raise ConfigError(f"--out ({out}): holds results already; choose another directory")
    loaded = _load(trace, hours)
    settings = load_settings(fleet) if fleet else load_settings(EXAMPLE_FLEET) if trace is None else fleet_for(loaded)
    place = TuningTask(trace=loaded, fleet=settings, hours=hours, seeds=seeds, settings={"looks_every_seconds": every}, p95_seconds=p95)
    proposal = run_tuning(place, out, jobs=jobs)
    (out / "fleet.yaml").write_text(yaml.safe_dump(proposal.fleet, sort_keys=False), encoding="utf-8")
    write_report()
    if as_json:
        print(json.dumps(asdict(proposal)))  # noqa: T201
        return
    Console().print(*tables_of(proposal), sep="\n", soft_wrap=True)
    say(f"as proposed: {out / 'fleet.yaml'}\nall runs: {out / 'report.html'}")


def _drawing_of_comparison(out: Path) -> Callable[[], Path]:
    _drawing(out)
    from workbench.report.comparison import write_comparison  # noqa: PLC0415 - drawing is an extra

    return lambda: write_comparison(out)


def _simulate_rival(experiment: Experiment, *, as_json: bool) -> None:
    """Play somebody else's policy: its measures, without pictures."""
    result = play(experiment)
    pools = result.pop("pools")
    del result["timeline"]
    if as_json:
        print(json.dumps(result))  # noqa: T201
        return
    table = Table(title=f"{experiment.policy} {result['setting']}".strip(), title_justify="left", box=SIMPLE_HEAD, padding=0)
    table.add_column("pool", no_wrap=True)
    for header in ("jobs", "killed", "$", "with waiting", "p50", "p95", "launches"):
        table.add_column(header, justify="right", no_wrap=True)
    for name, of in (*pools.items(), ("all", result)):
        waits = f"{of['wait_p50_s']:.0f} s", f"{of['wait_p95_s']:.0f} s"
        table.add_row(name, str(of["jobs"]), str(of["killed"]), f"{of['usd']:.2f}", f"{of['total_usd']:.2f}", *waits, str(of["launches"]))
    Console().print(table)


def _say_where() -> Callable[[str], None]:
    said: set[str] = set()

    def tell(url: str) -> None:
        if url not in said:
            say(f"it takes commands now: export AUTOSCALER_LOCAL={url}; autoscaler status", stderr=True)
        said.add(url)

    return tell


def _load(trace: Path | None, hours: float) -> Trace:
    return load_trace(trace or MXNET, hours=hours, start_at=MXNET_DAY if trace is None else None)


def _directory(out: Path | None, name: str, *, as_json: bool) -> Path | None:
    """Where the report goes; a script that wants JSON gets one only where it says so."""
    return out or (None if as_json else Path("out") / name)


def _follow(run: Run, progressing: Iterator[Tick], told: dict[str, str], out: Path | None, *, as_json: bool) -> None:
    """Show a run while it goes, then its result and its report."""
    write_report = _drawing(out)
    console = Console()
    last = Tick()
    with nullcontext() if as_json else Live(console=console, refresh_per_second=4, transient=True) as view:
        for last in progressing:
            if view is not None and last.passes % 5 == 1:
                view.update(screen(run, last))
    result = told | run.result(last)
    page = write_report(run, result)
    if as_json:
        print(json.dumps(result))  # noqa: T201
        return
    console.print(summary(result))
    for text in last.error_texts[:3]:
        say(f"error: {text}", style="red")
    if run.trace.dropped:
        console.print(f"{run.trace.dropped} rows of the trace had no duration and were left out")
    if page:
        say(f"the run as pictures: {page}")


def _drawing(out: Path | None) -> Callable[[Run, dict[str, Any]], Path | None]:
    """Make ready to draw, so that what is missing is said before a long run and not after it."""
    if out is None:
        return lambda _run, _result: None
    try:
        from workbench.report.run.page import write_report  # noqa: PLC0415 - drawing is an extra, and takes a second to import
    except ImportError as error:
        raise ConfigError(f"--out ({out}): drawing needs the extra 'report', and {error.name} is not installed") from error
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--out ({out}): {error.strerror or error}") from error
    return lambda run, result: write_report(run, result, out)


def main() -> None:
    """Run the command line; our own errors are one line and exit code 1."""
    try:
        app(standalone_mode=True)
    except AutoscalerError as error:
        print(plain(" ".join(str(error).split())), file=sys.stderr)  # noqa: T201
        sys.exit(1)
