"""The charts of a run. Each is one Vega-Lite view, so that a page can stretch it to whatever width there is."""

from dataclasses import dataclass
from typing import Any

import altair as alt

from autoscaler_workbench.report.html import time_axis
from autoscaler_workbench.report.run.rows import FLEET, OTHERS, Row, agent_rows, held_rows, queue_rows, step_rows, usd_rows, wait_rows
from autoscaler_workbench.simulate.recording import AgentState, states_of
from autoscaler_workbench.simulate.run import Run

_STATE_COLOURS = {
    AgentState.BUSY: "#3a923a",
    AgentState.IDLE: "#f2b134",
    AgentState.DRAINING: "#c9463d",
    AgentState.BOOTING: "#8fb8de",
    AgentState.STOPPED: "#c8c4be",
}
# Tableau's ten, told apart by most colour-blind people too; the last is for what shares a colour.
_PALETTE = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1", "#ff9da7", "#9c755f", "#bab0ac")
_LANES = ("launch", "start", "uncordon", "cordon", "stop", "finish-stop", "terminate", "delete-node", "adopt", "create-beacon", "held")
_LIMIT = "#b3123b"


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart that names its data sets, and these. Altair would copy and check every row of data that stands inside a chart."""

    chart: alt.Chart | alt.LayerChart | alt.FacetChart
    data: dict[str, list[Row]]

    def spec(self, **properties: Any) -> dict[str, Any]:
        """Write it as Vega-Lite, data included."""
        written: dict[str, Any] = self.chart.properties(**properties).to_dict()
        return written | {"datasets": self.data}


def queue_chart(run: Run, colours: dict[str, str]) -> Drawing:
    """Jobs waiting, by pool."""
    return Drawing(_stack(run, "queue", "jobs waiting", palette(colours)), {"queue": queue_rows(run, colours)})


def usd_chart(run: Run, colours: dict[str, str]) -> Drawing:
    """Dollars an hour of what ran, by pool, under the fleet's limit."""
    limit = run.world.fleet.limits.max_usd_per_hour
    rows = {"usd": usd_rows(run, colours)}
    return _under_limit(_stack(run, "usd", "dollars an hour", palette(colours)), rows, limit, f"limit: ${limit:g} an hour")


def agents_chart(run: Run, pool: str) -> Drawing:
    """Agents of one pool by state, under its limit."""
    limit, name = run.world.fleet.pools[pool].max_agents, f"agents of {pool}"
    colours = state_colours(run)
    chart = _stack(run, name, "agents", colours)
    return _under_limit(chart, {name: agent_rows(run, pool, list(colours))}, limit, f"limit: {limit}")


def state_colours(run: Run) -> dict[str, str]:
    """The colour of each state that an agent of the run may have, from the bottom up."""
    return {str(state): colour for state, colour in _STATE_COLOURS.items() if state in states_of(run.world.fleet)}


def waits_chart(run: Run, colours: dict[str, str]) -> Drawing:
    """One dot a job: when it could have run, and how long it waited."""
    rows = wait_rows(run, colours)
    scale = alt.Undefined if rows else alt.Scale(domain=[0, 1])  # an axis without dots needs ends, too
    chart = (
        alt.Chart(alt.NamedData("waits"))
        .mark_circle(size=22, opacity=0.55)
        .encode(
            x=_time(run),
            y=alt.Y("minutes:Q", title="minutes waited", scale=scale),
            color=_colour("pool", palette(colours)),
            tooltip=[_tip("job"), _tip("pool"), _tip("when", "could run at"), _tip("minutes", "minutes waited")],
        )
    )
    return Drawing(chart, {"waits": rows})


def steps_chart(run: Run, colours: dict[str, str]) -> Drawing:
    """Each step with its reason, and each thing that was held back, on one time-line."""
    taken, held = step_rows(run, colours), held_rows(run, colours)
    present = {row["step"] for row in (*taken, *held)}
    lanes = alt.Y("step:N", title=None, sort=[lane for lane in _LANES if lane in present])
    fleet = {FLEET: _PALETTE[-1]} if any(row["colour"] == FLEET for row in (*taken, *held)) else {}
    colour = _colour("colour", palette(colours) | fleet)
    told = [_tip("when"), _tip("pool"), _tip("reason"), _tip("detail")]
    ticks = (
        alt.Chart(alt.NamedData("steps"))
        .mark_tick(thickness=2, bandSize=18, opacity=0.8)
        .encode(x=_time(run), y=lanes, color=colour, tooltip=[*told, _tip("count", "agents"), _tip("node"), _tip("outcome")])
    )
    bars = alt.Chart(alt.NamedData("held")).mark_bar(height=10, opacity=0.6)
    bars = bars.encode(x=alt.X("at:T", title=None), x2="until:T", y=lanes, color=colour, tooltip=told)
    return Drawing(alt.layer(ticks, bars), {"steps": taken, "held": held})


def palette(colours: dict[str, str]) -> dict[str, str]:
    """The colour of each name that `coloured` gave."""
    own = [name for name in dict.fromkeys(colours.values()) if name != OTHERS]
    chosen = dict(zip(own, _PALETTE, strict=False))
    return chosen | {OTHERS: _PALETTE[-1]} if OTHERS in colours.values() else chosen


def _stack(run: Run, data: str, title: str, colours: dict[str, str]) -> alt.Chart:
    chart: alt.Chart = (
        alt.Chart(alt.NamedData(data))
        .mark_area(interpolate="step-after", opacity=0.85, line=False)
        .encode(
            x=_time(run),
            y=alt.Y("value:Q", title=title, stack="zero"),
            color=_colour("series", colours),
            order=alt.Order("rank:Q"),
            tooltip=[_tip("when"), _tip("series", "which"), _tip("value", title)],
        )
    )
    return chart


def _under_limit(chart: alt.Chart, rows: dict[str, list[Row]], limit: float, text: str) -> Drawing:
    name = f"limit of {next(iter(rows))}"
    at = alt.Chart(alt.NamedData(name))
    rule = at.mark_rule(color=_LIMIT, strokeDash=[6, 4]).encode(y="limit:Q", tooltip=_tip("text"))
    words = at.mark_text(color=_LIMIT, align="left", baseline="bottom", x=4, dy=-2).encode(y="limit:Q", text="text:N")
    return Drawing(alt.layer(chart, rule, words), rows | {name: [{"limit": limit, "text": text}]})


def _time(run: Run) -> alt.X:
    """One axis for all charts of a run, so that what stands above each other happened together."""
    first, last = run.recording.samples[0].at, run.recording.samples[-1].at
    return time_axis(domain=[int(first * 1000), int(last * 1000)])


def _colour(field: str, colours: dict[str, str]) -> alt.Color:
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    return alt.Color(f"{field}:N", title=None, scale=scale)


def _tip(field: str, title: str | None = None) -> alt.Tooltip:
    return alt.Tooltip(field, title=title or field, type="nominal")
