"""Commands that play traces in the simulated world, and that read a trace of a Jenkins."""

import time
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from rich.box import SIMPLE_HEAD
from rich.progress import MofNCompleteColumn, Progress

from autoscaler.config import load_settings
from autoscaler.domain.report.datum import Datum
from autoscaler.domain.wording import counted
from autoscaler.errors import ConfigError
from autoscaler_workbench.cli.assignments import PHYSICS, load_with, physics_of, read_assignments
from autoscaler_workbench.cli.follow import draw, follow, report_directory, tell
from autoscaler_workbench.cli.options import AsJson, FleetFile, Hours, Out, Seed, TraceFile, say_part, the_trace
from autoscaler_workbench.cli.screen import Screen, print_proposal
from autoscaler_workbench.cli.terminal import print_table, ready_to_draw, say, show
from autoscaler_workbench.experiment.by_needs import read_needs
from autoscaler_workbench.experiment.compare import Workload, carried_workloads, entries, loaded
from autoscaler_workbench.experiment.compare import compare as run_comparison
from autoscaler_workbench.experiment.experiment import EVERY_POLICY, OURS, Experiment, play
from autoscaler_workbench.experiment.history import ReadLimits, connect, read_history
from autoscaler_workbench.experiment.tune import Proposal, TuningTask, in_words
from autoscaler_workbench.experiment.tune import tune as run_tuning
from autoscaler_workbench.fakes.world.physics import Physics
from autoscaler_workbench.simulate.drive import MINUTE
from autoscaler_workbench.simulate.fleets import EXAMPLE_FLEET, fleet_for
from autoscaler_workbench.simulate.run import Run, in_memory, prepare
from autoscaler_workbench.simulate.traces import MXNET

FleetOrGuess = Annotated[Path | None, typer.Option("--fleet", help="The fleet file.", show_default="guessed from the trace's labels")]
Every = Annotated[float, typer.Option(min=5, max=3600, help="Seconds between two looks.")]
Jobs = Annotated[int, typer.Option(min=-1, help="Processes; -1: one for each core.")]
# Longer runs are kept without their alarms: a day has a hundred thousand metrics.
_MEASURED_HOURS = 48.0
Policies = Annotated[
    list[str] | None,
    typer.Option("--policy", help="May be repeated.", show_default="all; those that stop instances where the fleet file has a warm_pool"),
]
PhysicsOptions = Annotated[
    list[str] | None, typer.Option("--physics", metavar="KEY=VALUE", help=f"Change the simulated world: {', '.join(PHYSICS)}.")
]


def add_commands(app: typer.Typer) -> None:
    """Add them to the command line."""
    for command in (simulate, compare, history, tune):
        app.command()(command)


def simulate(
    trace: TraceFile = None,
    fleet: FleetFile = EXAMPLE_FLEET,
    policy: Annotated[str, typer.Option(help=f"The policy that scales: {', '.join(EVERY_POLICY)}.")] = OURS,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", metavar="[POOL.]KEY=VALUE", help="Change a setting of the fleet file; may be repeated.")
    ] = None,
    every: Every = MINUTE,
    hours: Hours = 24.0,
    seed: Seed = 1,
    physics: PhysicsOptions = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Run a trace in memory: the same decisions as the functions, many times faster than the demo."""
    world = _physics(physics)
    if policy != OURS:
        played = Experiment(trace=the_trace(trace, hours), fleet=load_settings(fleet), hours=hours, policy=policy, seed=seed, physics=world)
        _simulate_rival(replace(played, settings=read_assignments(assignments or [], "--set")), as_json=as_json)
        return
    changed = load_with(fleet, assignments or [])
    run = prepare(the_trace(trace, hours), changed.domain(), hours=hours, seed=seed, physics=world)
    about = {"policy": policy, "setting": " ".join(assignments or [])}
    _simulate(run, every, about, out, as_json=as_json)


def compare(
    out: Annotated[Path, typer.Option(help="Directory for results.csv, pools.csv and report.html; runs found there are not repeated.")],
    traces: Annotated[
        list[Path] | None, typer.Option("--trace", help="Workload traces; may be repeated.", show_default="the bundled ones")
    ] = None,
    fleet: FleetOrGuess = None,
    policies: Policies = None,
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="How many random seeds each run is played with.")] = 5,
    hours: Hours = 24 * 7,
    skip: Annotated[float, typer.Option(min=0, help="Hours of each trace to skip, before the lead-in.")] = 0.0,
    lead_in: Annotated[float, typer.Option(min=0, help="Hours to play before measuring starts, to learn from.")] = 0.0,
    sweep: Annotated[bool, typer.Option(help="Also vary each policy's main setting.")] = True,
    physics: PhysicsOptions = None,
    jobs: Jobs = -1,
    as_json: AsJson = False,
) -> None:
    """Play traces by every policy in the same simulated world, and compare cost and waiting."""
    like = Workload(file=MXNET, fleet=fleet, hours=hours, skip_hours=skip, lead_in_hours=lead_in, physics=_physics(physics))
    workloads = [replace(like, file=file) for file in traces or []] or carried_workloads(like)
    todo = entries(workloads, policies or (), seeds, sweep=sweep)
    for workload in workloads:
        say_part(loaded(workload)[0], workload.part)
    ready_to_draw(out)
    with Progress(*Progress.get_default_columns(), MofNCompleteColumn(), transient=True, disable=as_json) as progress:
        task = progress.add_task("runs", total=len(todo))
        for done, _ in run_comparison(todo, out, jobs=jobs):
            progress.update(task, completed=done)
            if not progress.console.is_terminal:
                say(f"{done} of {counted(len(todo), 'run')} done", stderr=True)
    report, impressions = _write_comparison(out)
    answer = {"runs": len(todo), "results": str(out / "results.csv"), "report": str(report), "impressions": impressions}
    told = "\n".join([*impressions, f"{len(todo)} runs: {out / 'results.csv'}", f"report: {report}"])
    show(answer, lambda: say(told), as_json=as_json)


def history(
    url: Annotated[str, typer.Argument(help="A Jenkins, such as https://jenkins.example.org/.")],
    out: Annotated[Path, typer.Option(help="The trace to write, which simulate, compare and tune read.")],
    user: Annotated[str | None, typer.Option(envvar="JENKINS_USER", show_default="anonymous")] = None,
    token: Annotated[str | None, typer.Option(envvar="JENKINS_TOKEN", help="That user's API token.", show_default=False)] = None,
    ca_bundle: Annotated[
        str | None, typer.Option(envvar="JENKINS_CA_BUNDLE", help="The only authorities to trust for TLS.", show_default=False)
    ] = None,
    days: Annotated[float, typer.Option(min=0.1, max=366, help="How far back.")] = 28.0,
    requests: Annotated[int, typer.Option(min=1, help="At most this many requests.")] = 5000,
    pause: Annotated[float, typer.Option(min=0, help="Seconds between two requests.")] = 0.25,
    as_json: AsJson = False,
) -> None:
    """Read a Jenkins' build history as a trace, one request at a time."""
    limits = ReadLimits(since=time.time() - days * 86_400, requests=requests, pause_seconds=pause)
    past = read_history(connect(url, user, token, ca_bundle, time.monotonic), limits, time.sleep)
    past.write(out)
    told = {name: value for name, value in asdict(past).items() if name != "rows"} | {"builds": len(past.rows), "trace": str(out)}
    lines = [
        f"{len(past.rows)} builds of {past.jobs} jobs, in {past.requests} requests: {out}",
        f"left out: {past.pipelines} pipeline jobs; only their logs tell on which agents their stages ran" if past.pipelines else "",
        f"left out: {past.left_out} builds that still run, ran on the controller, or ran without a label on an agent that is gone"
        if past.left_out
        else "",
        f"incomplete: --requests ({requests}) was reached" if past.cut_short else "",
    ]
    show(told, lambda: say("\n".join(filter(None, lines))), as_json=as_json)


def tune(
    out: Annotated[Path, typer.Option(help="An empty directory for the proposed fleet.yaml, results.csv and report.html.")],
    trace: TraceFile = None,
    fleet: FleetOrGuess = None,
    hours: Hours = 24 * 7,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="How many random seeds each setting is played with.")] = 2,
    every: Every = MINUTE,
    p95: Annotated[float | None, typer.Option(min=0, help="The longest p95 wait allowed, in seconds.", show_default="lowest cost")] = None,
    needs: Annotated[Path | None, typer.Option(help="What autoscaler needs --json printed: sizes pools by it, too.")] = None,
    jobs: Jobs = -1,
    as_json: AsJson = False,
) -> None:
    """Propose warm pools, warm executors, minimum agents, sizes and the price of waiting: the settings cheapest over a trace."""
    ready_to_draw(out)
    if (out / "results.csv").exists():
        raise ConfigError(f"--out ({out}): holds results already; choose another directory")
    loaded, known = the_trace(trace, hours), tuple(read_needs(needs)) if needs else ()
    settings = load_settings(fleet) if fleet else load_settings(EXAMPLE_FLEET) if trace is None else fleet_for(loaded)
    looks = {"looks_every_seconds": every}
    task = TuningTask(trace=loaded, fleet=settings, hours=hours, seeds=seeds, settings=looks, p95_seconds=p95, needs=known)
    proposal = run_tuning(task, out, jobs=jobs)
    _write_fleets(proposal, out)
    report, words = _write_proposal(proposal, task, out), in_words(proposal, task)
    answer = {name: value for name, value in asdict(proposal).items() if name != "tried"} | {"words": words}
    show(answer, lambda: print_proposal(proposal, words, out / "fleet.yaml", report), as_json=as_json)


def _write_fleets(proposal: Proposal, out: Path) -> None:
    """Write the proposed fleet file, and those that are sized by needs."""
    for name, fleet in (("fleet", proposal.fleet), *((one.name, one.fleet) for one in proposal.sized)):
        (out / f"{name}.yaml").write_text(yaml.safe_dump(fleet, sort_keys=False), encoding="utf-8")


def _physics(given: list[str] | None) -> Physics:
    return physics_of(read_assignments(given or [], "--physics"))


def _write_comparison(out: Path) -> tuple[Path, list[str]]:
    from autoscaler_workbench.report.comparison.page import write_comparison  # noqa: PLC0415 - drawing is an extra

    return write_comparison(out)


def _write_proposal(proposal: Proposal, task: TuningTask, out: Path) -> Path:
    from autoscaler_workbench.report.proposal import write_proposal  # noqa: PLC0415 - drawing is an extra

    return write_proposal(proposal, task, out)


def _simulate_rival(experiment: Experiment, *, as_json: bool) -> None:
    """Play a rival's policy and show its measures, without pictures."""
    result = play(experiment)
    pools = result.pop("pools")
    del result["timeline"]
    rows = []
    for name, of in (*pools.items(), ("all", result)):
        money, waits = (f"{of['usd']:.2f}", f"{of['total_usd']:.2f}"), (f"{of['wait_p50_s']:.0f} s", f"{of['wait_p95_s']:.0f} s")
        rows.append((name, of["jobs"], of["killed"], *money, *waits, of["launches"]))
    title = f"{experiment.policy} {result['setting']}".strip()
    headers = ("pool", "jobs", "killed", "$", "with waiting", "p50", "p95", "launches")
    show(result, partial(print_table, headers, rows, title=title, figures=True, box=SIMPLE_HEAD, padding=0), as_json=as_json)


def _simulate(run: Run, every: float, about: dict[str, Any], out: Path | None, *, as_json: bool) -> None:
    """Show a run while it goes, then what came of it."""
    directory = report_directory(out, "simulate", as_json=as_json)
    measured = directory is not None and run.hours <= _MEASURED_HOURS
    published: list[tuple[float, Datum]] = []
    progressing = in_memory(run, every=every, published=published if measured else None)
    last = follow(progressing, lambda at: Screen(run=run, progress=at, hours=run.hours, part=run.trace.name), quiet=as_json)
    result = about | run.result(last)
    show(result, lambda: tell(run, result, last), as_json=as_json)
    if lines := draw(run, result, directory, published):
        say("\n".join(lines), stderr=as_json)
