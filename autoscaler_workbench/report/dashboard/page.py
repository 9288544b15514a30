"""The dashboard as a page that opens without a network: the alarms' states, and the widgets."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import altair as alt

from autoscaler_workbench.report.dashboard.alarms import Alarm, Composite, Published, read_alarms, ringing, states
from autoscaler_workbench.report.dashboard.widgets import Widget, read_widgets
from autoscaler_workbench.report.html import CONFIG, render
from autoscaler_workbench.simulate.shipped import deployed

TEMPLATE = deployed("template.yaml")
_UNIT_WORDS = {"bytes": "~s"}


def write_dashboard(fleet: str, published: Published, out: Path) -> Path:
    """Write ``dashboard.html`` into a directory that is there; return its path."""
    began = min((at for at, _ in published), default=0.0)
    ended = max((at for at, _ in published), default=0.0)
    alarms, composites = read_alarms(TEMPLATE, fleet)
    shown = _shown(alarms, composites)
    rings = set(ringing(states(alarms, composites, published, began, ended)))
    widgets = read_widgets(TEMPLATE, fleet, published)
    html = render(
        "dashboard/dashboard.html",
        {f"w{number}": _spec(widget) for number, widget in enumerate(widgets) if widget.series},
        fleet=fleet,
        began=_moment(began),
        ended=_moment(ended),
        rings=rings & {name for name, _ in shown},
        alarms=[_alarm(name, description) for name, description in shown],
        widgets=widgets,
    )
    file = out / "dashboard.html"
    file.write_text(html, encoding="utf-8")
    return file


def _shown(alarms: list[Alarm], composites: list[Composite]) -> list[tuple[str, str]]:
    """Name and description of the alarms that notify: composites, and alarms in no composite."""
    parts = {part for composite in composites for part in composite.of}
    whole = [(composite.name, composite.description) for composite in composites]
    return whole + [(alarm.name, alarm.description) for alarm in alarms if alarm.name not in parts]


def _alarm(name: str, description: str) -> dict[str, str]:
    text, _, place = description.rpartition(" ")
    file, _, anchor = place.partition("#")
    return {"name": name, "text": text, "runbook": f"{(TEMPLATE.parent / file).as_uri()}#{anchor}"}


def _spec(widget: Widget) -> dict[str, Any]:
    """The widget as a Vega-Lite chart."""
    rows = [{"at": int(at * 1000), "value": value, "line": series.label} for series in widget.series for at, value in series.points]
    axis = alt.Axis(title=widget.unit or None, grid=True, format=_UNIT_WORDS.get(widget.unit, ""))
    chart = alt.Chart(alt.NamedData("rows")).encode(
        x=alt.X("at:T", scale=alt.Scale(type="utc"), title=None),
        y=alt.Y("value:Q", stack="zero" if widget.stacked else None, axis=axis, scale=alt.Scale(zero=True)),
        color=alt.Color("line:N", title=None, sort=[series.label for series in widget.series]),
        tooltip=[alt.Tooltip("line:N", title="what"), alt.Tooltip("value:Q", title=widget.unit or "value"), alt.Tooltip("at:T")],
    )
    drawn = chart.mark_area(opacity=0.75, interpolate="step-after") if widget.stacked else chart.mark_line(interpolate="step-after")
    legend = {"legend": {"orient": "bottom", "columns": 3, "labelLimit": 180, "title": None}}
    spec: dict[str, Any] = drawn.properties(width="container", height=160).to_dict()
    return spec | {"datasets": {"rows": rows}, "config": CONFIG | legend}


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")
