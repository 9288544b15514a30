"""The dashboard as a page that opens without a network: the alarms' states, and the widgets."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import altair as alt

from autoscaler.domain.wording import counted, duration
from autoscaler_workbench.report.dashboard.alarms import Alarm, Composite, Period, Published, periods, read_alarms, state_of
from autoscaler_workbench.report.dashboard.cloudformation import FULL
from autoscaler_workbench.report.dashboard.widgets import Widget, read_widgets
from autoscaler_workbench.report.html import CONFIG, render, time_axis
from autoscaler_workbench.simulate.shipped import deployed

TEMPLATE = deployed("template.yaml")
# Tableau's ten: told apart by most colour-blind people, in the light and in the dark.
_PALETTE = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1", "#ff9da7", "#9c755f", "#bab0ac")
_WIDEST, _THINNEST = 4.5, 1.5
_NOTHING = alt.Scale(domain=[0, 1])  # a line of zeros lies on the ground, and not in the middle of an axis without ends
_UNIT_WORDS = {"bytes": "~s"}


def write_dashboard(fleet: str, published: Published, out: Path) -> Path:
    """Write ``dashboard.html`` into a directory that is there; return its path."""
    began = min((at for at, _ in published), default=0.0)
    ended = max((at for at, _ in published), default=0.0)
    alarms, composites = read_alarms(TEMPLATE, fleet, **FULL)
    rang = periods(alarms, composites, published, began, ended)
    told = [_alarm(name, description, rang[name], ended) for name, description in _shown(alarms, composites)]
    told.sort(key=lambda alarm: (not alarm["rings"], not alarm["rang"]))
    widgets = read_widgets(TEMPLATE, fleet, published, **FULL)
    html = render(
        "dashboard/dashboard.html",
        {f"w{number}": _spec(widget) for number, widget in enumerate(widgets) if widget.series},
        fleet=fleet,
        began=_moment(began),
        ended=_moment(ended),
        ringing=sum(alarm["rings"] for alarm in told),
        alarms=told,
        widgets=[(widget, _colours(widget)) for widget in widgets],
    )
    file = out / "dashboard.html"
    file.write_text(html, encoding="utf-8")
    return file


def _shown(alarms: list[Alarm], composites: list[Composite]) -> list[tuple[str, str]]:
    """Name and description of the alarms that notify: composites, and alarms in no composite."""
    parts = {part for composite in composites for part in composite.of}
    whole = [(composite.name, composite.description) for composite in composites]
    return whole + [(alarm.name, alarm.description) for alarm in alarms if alarm.name not in parts]


def _alarm(name: str, description: str, rang: Sequence[Period], ended: float) -> dict[str, Any]:
    text, _, place = description.rpartition(" ")
    seconds = sum((ended if end is None else end) - begin for begin, end in rang)
    return {
        "name": name,
        "text": text,
        "rings": state_of(rang) == "ALARM",
        "rang": f"rang {'once' if len(rang) == 1 else counted(len(rang), 'time')}, for {duration(seconds)}" if rang else "",
        "place": place,
        "link": _link(place),
    }


def _link(place: str) -> str:
    """The address of an entry of the runbook; "" where it is not to be had from here: a wheel carries no pages."""
    if place.startswith(("https://", "http://")):
        return place
    name, _, anchor = place.partition("#")
    file = TEMPLATE.parent / name
    return f"{file.as_uri()}#{anchor}" if file.is_file() else ""


def _colours(widget: Widget) -> dict[str, str]:
    return {series.label: _PALETTE[number % len(_PALETTE)] for number, series in enumerate(widget.series)}


def _spec(widget: Widget) -> dict[str, Any]:
    """The widget as a Vega-Lite chart. Lines that coincide are told apart by their widths: the first is the widest, the last on top."""
    rows = list(_stacked_rows(widget) if widget.stacked else _line_rows(widget))
    most = max((row["value"] for row in rows if row["value"] is not None), default=0.0)
    axis = alt.Axis(title=widget.unit or None, grid=True, format=_UNIT_WORDS.get(widget.unit, ",~f"))
    colours = _colours(widget)
    chart = alt.Chart(alt.NamedData("rows")).encode(
        x=time_axis(),
        y=alt.Y("value:Q", stack="zero" if widget.stacked else None, axis=axis, scale=alt.Scale(zero=True) if most else _NOTHING),
        color=alt.Color("line:N", sort=list(colours), scale=alt.Scale(domain=list(colours), range=list(colours.values()))),
        tooltip=[alt.Tooltip("line:N", title="what"), alt.Tooltip("value:Q", title=widget.unit or "value"), alt.Tooltip("when:N")],
    )
    drawn = _areas(chart) if widget.stacked else _lines(chart, with_dots=any(row["alone"] for row in rows))
    config = CONFIG | {"background": "transparent", "legend": {"disable": True}, "autosize": {"type": "fit", "contains": "padding"}}
    spec: dict[str, Any] = drawn.properties(width="container", height=160).to_dict()
    return spec | {"datasets": {"rows": rows}, "config": config}


def _areas(chart: alt.Chart) -> alt.Chart:
    drawn: alt.Chart = chart.mark_area(opacity=0.85, interpolate="step-after").encode(order="rank:Q")
    return drawn


def _lines(chart: alt.Chart, *, with_dots: bool) -> alt.Chart | alt.LayerChart:
    """Lines, and a dot for a value that has none beside it."""
    lines: alt.Chart = chart.mark_line(interpolate="step-after").encode(strokeWidth=alt.StrokeWidth("width:Q", scale=None, legend=None))
    if not with_dots:
        return lines
    dots: alt.Chart = chart.mark_point(filled=True, size=22, opacity=1)
    return alt.LayerChart(layer=[lines, dots.transform_filter("datum.alone")])


def _line_rows(widget: Widget) -> Iterator[dict[str, Any]]:
    for number, series in enumerate(widget.series):
        width = min(_WIDEST, _THINNEST + len(widget.series) - 1 - number)
        values = [None, *(value for _, value in series.points), None]
        for place, (at, value) in enumerate(series.points):
            alone = value is not None and values[place] is None and values[place + 2] is None
            yield _row(at, value, series.label) | {"alone": alone, "width": width}


def _stacked_rows(widget: Widget) -> Iterator[dict[str, Any]]:
    """Every series at every instant: where others have a value it adds nothing, where none has, the areas break."""
    known = {series.label: dict(series.points) for series in widget.series}
    for at in sorted({at for points in known.values() for at in points}):
        some = any(points.get(at) is not None for points in known.values())
        for rank, (label, points) in enumerate(known.items()):
            yield _row(at, (points.get(at) or 0.0) if some else None, label) | {"rank": rank}


def _row(at: float, value: float | None, line: str) -> dict[str, Any]:
    return {"at": int(at * 1000), "when": _moment(at), "value": value, "line": line}


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")
