"""The demo's screen: progress, queue, agents per pool, dollars so far; then a summary."""

from collections import Counter
from datetime import UTC, datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from workbench.demo import Stage
from workbench.drive import Progress
from workbench.truth import dollars, is_servable
from workbench.world.jenkins import Ended, Node

_COLUMNS = ("booting", "busy", "idle", "draining")
_COLOURS = {"booting": "blue", "busy": "green", "idle": "yellow", "draining": "red"}
_SIGNS = {"busy": "█", "idle": "█", "draining": "░", "booting": "·"}


def screen(stage: Stage, progress: Progress) -> RenderableType:
    """Draw one moment of the day."""
    world = stage.world
    now = datetime.fromtimestamp(world.timeline.now, UTC)
    finished = sum(build.ended is Ended.FINISHED for build in stage.replay.builds)
    killed = sum(build.ended is Ended.KILLED for build in stage.replay.builds)
    line = Text.assemble(
        (f"{now:%Y-%m-%d %H:%M} UTC", "bold"),
        f"   {finished} of {stage.replay.rows} jobs finished   ",
        (f"{killed} killed", "bold red" if killed else "green"),
        f"   ${dollars(world):,.2f} so far   {progress.errors} errors",
    )
    hours = (world.timeline.now - stage.trace.start_at) / 3600
    return Group(line, ProgressBar(total=stage.hours, completed=min(hours, stage.hours), width=70), _pools(stage))


def summary(result: dict[str, Any]) -> RenderableType:
    """Draw the result."""
    table = Table(title=f"{result['trace']}: what was true in the end", show_header=False, title_justify="left")
    table.add_column("measure", style="cyan")
    table.add_column("value", justify="right")
    for label, text in _lines(result):
        table.add_row(label, text)
    return table


def _lines(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        ("jobs finished", f"{result['finished']} of {result['jobs']}"),
        ("builds killed", str(result["killed"])),
        ("jobs that no pool can serve", str(result["unservable"])),
        (
            "wait for an executor: p50, p95, longest",
            f"{result['wait_p50_s']:.0f} s, {result['wait_p95_s']:.0f} s, {result['wait_max_s']:.0f} s",
        ),
        ("agent hours", f"{result['agent_hours']:.1f}"),
        ("bill", f"${result['usd']:,.2f}"),
        ("agents launched, terminated", f"{result['launches']}, {result['terminations']}"),
        ("instances left over, nodes left over", f"{result['leaked_instances']}, {result['leaked_nodes']}"),
        ("passes, errors", f"{result['passes']}, {result['errors']}"),
        ("took", f"{result['took_s']:.0f} s"),
    ]


def _pools(stage: Stage) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("pool", style="cyan", no_wrap=True)
    for name in ("queue", *_COLUMNS, "limit"):
        table.add_column(Text(name, style=_COLOURS.get(name, "")), justify="right")
    table.add_column("", no_wrap=True)
    waiting = _waiting(stage)
    for pool in stage.fleet.pools.values():
        counts = _states(stage, pool.name)
        bar = Text.assemble(*((sign * counts[name], _COLOURS[name]) for name, sign in _SIGNS.items()))
        cells = [str(waiting[pool.name] or ""), *(str(counts[name] or "") for name in _COLUMNS), str(pool.max_agents)]
        table.add_row(pool.name, *cells, bar)
    return table


def _waiting(stage: Stage) -> Counter[str]:
    waiting: Counter[str] = Counter()
    for controller in stage.world.controllers.values():
        for build in controller.queue:
            if is_servable(stage.fleet, build):
                pools = [p.name for p in stage.fleet.pools.values() if build.expression and build.expression.matches(p.labels)]
                waiting[pools[0] if pools else ""] += 1
    return waiting


def _states(stage: Stage, pool: str) -> Counter[str]:
    states: Counter[str] = Counter()
    for instance in stage.world.alive():
        if instance.tags.get("autoscaler:pool") == pool:
            states[_state(stage.world.node_of(instance))] += 1
    return states


def _state(node: Node | None) -> str:
    if node is None or (not node.connected and not node.temporarily_offline):
        return "booting"
    if node.temporarily_offline:
        return "draining"
    return "busy" if node.builds else "idle"
