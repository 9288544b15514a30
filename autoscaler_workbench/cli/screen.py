"""What a run and a proposal look like on a terminal: progress, queue, agents per pool, dollars so far; then the result."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.text import Text

from autoscaler_workbench.cli.terminal import Table, print_table, say
from autoscaler_workbench.experiment.tune import Proposal
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from autoscaler_workbench.simulate.drive import Progress
from autoscaler_workbench.simulate.recording import AgentState, agents_by_state, waiting_by_pool
from autoscaler_workbench.simulate.result import dollars
from autoscaler_workbench.simulate.run import Run

_COLOURS = {AgentState.BOOTING: "blue", AgentState.BUSY: "green", AgentState.IDLE: "yellow", AgentState.DRAINING: "red"}
_SIGNS = {AgentState.BUSY: "█", AgentState.IDLE: "█", AgentState.DRAINING: "░", AgentState.BOOTING: "·"}


def screen(run: Run, progress: Progress) -> RenderableType:
    """Draw one moment of the day."""
    world = run.world
    now = datetime.fromtimestamp(world.timeline.now, UTC)
    finished = sum(build.ended is Ended.FINISHED for build in run.replay.builds)
    killed = sum(build.ended is Ended.KILLED for build in run.replay.builds)
    line = Text.assemble(
        (f"{now:%Y-%m-%d %H:%M} UTC", "bold"),
        f"   {finished} of {run.replay.rows} jobs finished   ",
        (f"{killed} killed", "bold red" if killed else "green"),
        f"   ${dollars(world):,.2f} so far   {progress.errors} errors",
    )
    hours = (world.timeline.now - run.trace.start_at) / 3600
    return Group(line, ProgressBar(total=run.hours, completed=min(hours, run.hours), width=70), _pools(run))


def summary(result: dict[str, Any]) -> RenderableType:
    """Draw the result."""
    table = Table(title=f"{result['trace']}: result", show_header=False, title_justify="left")
    table.add_column("measure", style="cyan")
    table.add_column("value", justify="right")
    for label, text in _lines(result):
        table.add_row(label, text)
    return table


def _lines(result: dict[str, Any]) -> list[tuple[str, str]]:
    kept = result["launches"] - result["terminations"] - result["leaked_instances"]
    waits = ", ".join(f"{result[name]:.0f} s" for name in ("wait_p50_s", "wait_p95_s", "wait_max_s"))
    return [
        ("jobs finished", f"{result['finished']} of {result['jobs']}"),
        ("builds killed", str(result["killed"])),
        ("jobs that no pool can serve", str(result["unservable"])),
        ("wait for an executor: p50, p95, longest", waits),
        ("agent hours", f"{result['agent_hours']:.1f}"),
        ("bill", f"${result['usd']:,.2f}"),
        ("agents launched, terminated, kept as a minimum", f"{result['launches']}, {result['terminations']}, {kept}"),
        ("instances left over, nodes left over", f"{result['leaked_instances']}, {result['leaked_nodes']}"),
        ("passes, errors", f"{result['passes']}, {result['errors']}"),
        ("took", f"{result['took_s']:.0f} s"),
    ]


def _pools(run: Run) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("pool", style="cyan", no_wrap=True)
    table.add_column("queue", justify="right")
    for state in AgentState:
        table.add_column(Text(state, style=_COLOURS[state]), justify="right")
    table.add_column("limit", justify="right")
    table.add_column("", no_wrap=True)
    waiting, agents = waiting_by_pool(run.world), agents_by_state(run.world)
    for pool in run.world.fleet.pools.values():
        counts = agents[pool.name]
        bar = Text.assemble(*((sign * counts[state], _COLOURS[state]) for state, sign in _SIGNS.items()))
        cells = [str(waiting[pool.name] or ""), *(str(counts[state] or "") for state in AgentState), str(pool.max_agents)]
        table.add_row(pool.name, *cells, bar)
    return table


def print_proposal(proposal: Proposal, fleet: Path, report: Path) -> None:
    """Print what to change, what that saves, and what shorter waits would cost."""
    before, after = proposal.before, proposal.after
    title = f"total ${before['total_usd']:,.0f} -> ${after['total_usd']:,.0f}, bill ${before['usd']:,.0f} -> ${after['usd']:,.0f}"
    changes = [(change.pool, change.key, change.now, change.proposed, f"${change.saves_usd:,.2f}") for change in proposal.changes]
    nothing = [("", "no setting that was tried costs less", "", "", "")]
    print_table(("pool", "setting", "now", "proposed", "saves there"), changes or nothing, title=title)
    rows = []
    for row in proposal.frontier:
        setting = row["setting"].rpartition("wait_usd_per_hour ")[2] if row is not after else "as it is"
        rows.append((setting, f"${row['usd']:,.0f}", f"{row['wait_p95_s']:,.0f} s"))
    print_table(("wait_usd_per_hour", "dollars", "p95 wait"), rows, title="what shorter waits cost")
    say(f"proposed fleet file: {fleet}\nall runs: {report}")
