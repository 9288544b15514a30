"""What a run and a proposal look like on a terminal: the moment, the queue and the agents by pool, and what was decided last."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table as Grid
from rich.text import Text

from autoscaler.domain.facts.fleet import Pool
from autoscaler_workbench.cli.screen_reasons import Mail, mail_lines, reasons, wrapped_lines
from autoscaler_workbench.cli.terminal import Table, print_table, say
from autoscaler_workbench.experiment.tune import Proposal
from autoscaler_workbench.fakes.world.jenkins.builds import Ended
from autoscaler_workbench.simulate.drive import Progress
from autoscaler_workbench.simulate.recording import AgentState, agents_by_state, states_of, waiting_by_pool
from autoscaler_workbench.simulate.result import dollars
from autoscaler_workbench.simulate.run import Run

_COLOURS = {
    AgentState.BOOTING: "blue",
    AgentState.BUSY: "green",
    AgentState.IDLE: "yellow",
    AgentState.DRAINING: "red",
    AgentState.STOPPED: "dim",
}
_SIGNS = {AgentState.BUSY: "█", AgentState.IDLE: "█", AgentState.DRAINING: "░", AgentState.BOOTING: "·", AgentState.STOPPED: "_"}
# Names of pools, six columns of figures and the gaps between them leave this much of 80 columns; a wider screen has more.
_FIGURES_WIDE, _STOPPED_WIDE, _LEAST_BAR = 48, 9, 6
_FIXED_LINES = 8
_LEAST_REASONS, _LEAST_POOLS, _SUBJECT_ROWS = 4, 2, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """One moment of a run, as large as the terminal.

    ``part``: which part of what plays; ``below``: lines that stay in sight; ``mails``: what an operator would have got so far.
    """

    run: Run
    progress: Progress
    hours: float
    part: str = ""
    below: tuple[str, ...] = ()
    mails: Sequence[Mail] = ()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Draw it."""
        width, below = options.max_width, wrapped_lines(self.below, console, options.max_width)
        left = console.size.height - 1 - _FIXED_LINES - len(below)
        subject = len(mail_lines(self.mails, console, width, _SUBJECT_ROWS))
        pools = self._busy_pools()[: max(_LEAST_POOLS, left - _LEAST_REASONS - subject)]
        mail = mail_lines(self.mails, console, width, max(left - len(pools) - _LEAST_REASONS, subject))
        why = reasons(self.run.recording, self.run.world.timeline.now, console, width, left - len(pools) - len(mail))
        yield self._headline()
        yield _whole_line(ProgressBar(total=self.hours, completed=min(self._hours_played(), self.hours)))
        yield Text(self.part, "dim", no_wrap=True, overflow="ellipsis")
        yield self._counts()
        yield Text()
        yield self._table(pools, width)
        yield Text()
        yield from why
        yield from mail
        yield from below

    def _hours_played(self) -> float:
        return (self.run.world.timeline.now - self.run.trace.start_at) / 3600

    def _headline(self) -> RenderableType:
        now = datetime.fromtimestamp(self.run.world.timeline.now, UTC)
        line = Grid.grid(expand=True)
        line.add_column(no_wrap=True)
        line.add_column(justify="right", no_wrap=True)
        line.add_row(Text(f"fleet {self.run.world.fleet.name}", "bold"), Text(f"{now:%a %Y-%m-%d %H:%M} UTC", "bold"))
        return line

    def _counts(self) -> Text:
        builds = self.run.replay.builds
        finished, killed = (sum(build.ended is how for build in builds) for how in (Ended.FINISHED, Ended.KILLED))
        errors = self.progress.errors
        return Text.assemble(
            f"{finished:,} of {len(builds):,} jobs finished   ",
            (f"{killed} killed", "bold red" if killed else "green"),
            f"   ${dollars(self.run.world):,.2f} so far   ",
            (f"{errors} errors", "bold red" if errors else ""),
            no_wrap=True,
        )

    def _busy_pools(self) -> list[Pool]:
        """Pools that have anything; those that never had are left out."""
        waiting, agents = waiting_by_pool(self.run.world), agents_by_state(self.run.world)
        pools = list(self.run.world.fleet.pools.values())
        return [pool for pool in pools if waiting[pool.name] or agents[pool.name]] or pools[:1]

    def _table(self, pools: list[Pool], width: int) -> Table:
        states = states_of(self.run.world.fleet)
        room = width - _FIGURES_WIDE - _STOPPED_WIDE * (AgentState.STOPPED in states) - max(len(pool.name) for pool in pools)
        has_bars = room >= _LEAST_BAR
        table = Table(box=None, pad_edge=False, padding=(0, 1, 0, has_bars), header_style="dim")
        table.add_column("pool", style="cyan", no_wrap=True)
        table.add_column("queue", justify="right", no_wrap=True)
        for state in states:
            table.add_column(Text(state, style=_COLOURS[state]), justify="right", no_wrap=True)
        table.add_column("limit", justify="right", no_wrap=True)
        if has_bars:
            table.add_column("", no_wrap=True)
        waiting, agents = waiting_by_pool(self.run.world), agents_by_state(self.run.world)
        agents_a_sign = max(1, ceil(max(pool.max_agents for pool in pools) / max(room, 1)))
        for pool in pools:
            counts = agents[pool.name]
            cells = [str(waiting[pool.name] or ""), *(str(counts[state] or "") for state in states), str(pool.max_agents)]
            table.add_row(pool.name, *cells, *([_bar(counts, agents_a_sign, room)] if has_bars else []))
        return table


def _bar(counts: Counter[AgentState], agents_a_sign: int, room: int) -> Text:
    bar = Text.assemble(*((sign * ceil(counts[state] / agents_a_sign), _COLOURS[state]) for state, sign in _SIGNS.items()))
    bar.truncate(room)
    return bar


def _whole_line(bar: ProgressBar) -> Grid:
    """A bar ends without a newline; a line of a table has one."""
    line = Grid.grid(expand=True)
    line.add_row(bar)
    return line


def print_proposal(proposal: Proposal, words: Sequence[str], fleet: Path, report: Path) -> None:
    """Print what to change, what that saves, and what shorter waits would cost."""
    after = proposal.after
    say("\n".join([words[0], *(f"- {line}" for line in words[1:]), ""]))
    rows = []
    for row in proposal.frontier:
        setting = row["setting"].rpartition("wait_usd_per_hour ")[2] if row is not after else "as it is"
        rows.append((setting, f"${row['usd']:,.0f}", f"{row['wait_p95_s']:,.0f} s"))
    print_table(("wait_usd_per_hour", "dollars", "p95 wait"), rows, title="what shorter waits cost")
    say(f"proposed fleet file: {fleet}\nall runs: {report}")
