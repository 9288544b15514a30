"""The report: ``report.html`` that opens without a network, and ``report.png`` and ``report.svg`` of the same charts."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from autoscaler_workbench.report.html import CONFIG, VEGA_LITE, render
from autoscaler_workbench.report.run import charts
from autoscaler_workbench.report.run.charts import Drawing
from autoscaler_workbench.report.run.rows import Row, coloured, held_rows, is_used, moment, pool_rows, step_rows
from autoscaler_workbench.simulate.run import Run

_PIXELS_WIDE, _POOLS_A_ROW = 1000, 2
_MOST_POOLS = 24


_QUEUE = """How many jobs had no free executor, by the pool that serves them. A tall peak that falls within minutes is a burst that new
agents took; a plateau is a limit, or work that was not worth another agent."""
_WAITS = """One dot a job, at the moment when it could have run. A boot takes some minutes: a job that needs a new agent waits at least
that long."""
_DOLLARS = """The price of all agents that existed at that time, by pool. The dashed line is the fleet's limit: nothing is launched beyond
it."""
_STEPS = """One mark a step; point at it to read its reason. The bars in the lane “held” are steps that were wanted and not done, and
why."""
_FIGURES = (
    ("queue", "Jobs waiting for an executor", _QUEUE, charts.queue_chart, 220),
    ("waits", "How long each job waited", _WAITS, charts.waits_chart, 240),
    ("dollars", "What ran, in dollars an hour", _DOLLARS, charts.usd_chart, 220),
    ("steps", "What the autoscaler did, and why", _STEPS, charts.steps_chart, 240),
)


@dataclass(frozen=True, slots=True)
class Figure:
    """One chart and the words that go with it."""

    name: str
    title: str
    text: str
    drawing: Drawing
    height: int


def write_report(run: Run, result: dict[str, Any], directory: Path) -> Path:
    """Write the three files into a directory that is there; return the page's path."""
    colours = coloured(run)
    figures = list(figures_of(run, colours))
    pools = [row for row in _by_dollars(run) if row["launches"]][:_MOST_POOLS]
    agents = [Figure(f"agents-{n}", row["name"], "", charts.agents_chart(run, row["name"]), 180) for n, row in enumerate(pools)]
    picture = picture_of(figures, agents, headline(run, result))
    (directory / "report.svg").write_text(vl_convert.vegalite_to_svg(picture, vl_version=VEGA_LITE), encoding="utf-8")
    (directory / "report.png").write_bytes(png_of(picture, scale=1.5))
    page = directory / "report.html"
    page.write_text(_html(run, result, colours, figures, agents), encoding="utf-8")
    return page


def figures_of(run: Run, colours: dict[str, str]) -> Iterator[Figure]:
    """The charts of the whole run: queue, waits, dollars, steps."""
    for name, title, text, draw, height in _FIGURES:
        yield Figure(name, title, text, draw(run, colours), height)


def _by_dollars(run: Run) -> list[Row]:
    return sorted(pool_rows(run), key=lambda row: (-row["usd"], row["name"]))


def headline(run: Run, result: dict[str, Any]) -> str:
    """A run in one line."""
    return (
        f"{run.trace.name} from {moment(run.trace.start_at)[:16]} UTC: {result['finished']} of {result['jobs']} jobs finished, "
        f"{result['killed']} killed, ${result['usd']:,.0f}, wait p95 {result['wait_p95_s'] / 60:.0f} min"
    )


def picture_of(figures: list[Figure], agents: list[Figure], words: str) -> dict[str, Any]:
    """All charts below one another, the pools' agents in rows; a legend of pools, one of states."""
    half = (_PIXELS_WIDE - 90) // _POOLS_A_ROW
    panels = [f.drawing.chart.properties(title=f.title, width=_PIXELS_WIDE, height=f.height) for f in figures]
    small = [f.drawing.chart.properties(title=f"Agents of {f.title}", width=half, height=f.height) for f in agents]
    rows = [alt.hconcat(*small[n : n + _POOLS_A_ROW]).resolve_scale(color="independent") for n in range(0, len(small), _POOLS_A_ROW)]
    together = (
        alt.vconcat(*panels[:-1], *rows, panels[-1], title=words, background="white", padding=16)
        .resolve_scale(color="independent")
        .configure(**CONFIG)
        .configure_title(anchor="start")
    )
    data = {name: rows for figure in (*figures, *agents) for name, rows in figure.drawing.data.items()}
    written: dict[str, Any] = together.to_dict()
    of_agents = [view for row in written["vconcat"] for view in row.get("hconcat", [])]
    of_pools = [view for view in written["vconcat"] if "hconcat" not in view]
    for view in (*of_pools[:-1], *of_agents[:-1]):
        for chart in view.get("layer", [view]):
            if "field" in chart["encoding"].get("color", {}):
                chart["encoding"]["color"]["legend"] = None
    return written | {"datasets": data}


def png_of(picture: dict[str, Any], *, scale: float) -> bytes:
    """Draw a picture with this many pixels a unit."""
    return vl_convert.vegalite_to_png(picture, vl_version=VEGA_LITE, scale=scale)


def _html(run: Run, result: dict[str, Any], colours: dict[str, str], figures: list[Figure], agents: list[Figure]) -> str:
    pools = pool_rows(run)
    return render(
        "run/page.html",
        {figure.name: _stretched(figure) for figure in (*figures, *agents)},
        headline=headline(run, result),
        trace=run.trace,
        began=moment(run.trace.start_at)[:16],
        hours=f"{run.hours:g}",
        result=result,
        figures=figures,
        agents=agents,
        pool_colours=charts.palette(colours),
        state_colours=charts.state_colours(run),
        pools=[pool for pool in pools if is_used(pool)],
        unused=[pool["name"] for pool in pools if not is_used(pool)],
        steps=sorted([*step_rows(run, colours), *held_rows(run, colours)], key=lambda row: (row["at"], row["step"])),
    )


def _stretched(figure: Figure) -> dict[str, Any]:
    """As wide as the page allows; the legend is the page's, where it can wrap."""
    config = CONFIG | {"background": "transparent", "legend": {"disable": True}, "autosize": {"type": "fit", "contains": "padding"}}
    return figure.drawing.spec(width="container", height=figure.height) | {"config": config}
