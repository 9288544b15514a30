"""Pages that open without a network: a template, its charts' data and the drawing library in one HTML file."""

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import altair as alt
import vl_convert
from jinja2 import Environment, StrictUndefined, select_autoescape
from markupsafe import Markup

VEGA_LITE = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
CONFIG: dict[str, Any] = {
    "font": "Liberation Sans, Arial, sans-serif",
    "view": {"stroke": None},
    "legend": {"orient": "bottom", "columns": 4, "columnPadding": 30, "labelLimit": 220},
    "axis": {"labelColor": "#444", "titleColor": "#444", "gridColor": "#e7e7e7", "domainColor": "#999", "tickColor": "#999"},
}


# 24 hours everywhere; where a day begins, its date.
CLOCK = "utcFormat(datum.value, utchours(datum.value) == 0 && utcminutes(datum.value) == 0 ? '%d %b' : '%H:%M')"
# Plain numbers, also on logarithmic axes, which would write 1e+02.
DOLLARS = "format(datum.value, datum.value < 10 ? '$,.2~f' : '$,.0f')"


def time_axis(field: str = "at", **options: Any) -> alt.X:
    """A time axis in UTC, of 24 hours."""
    axis = alt.Axis(labelExpr=CLOCK, labelOverlap="greedy", labelSeparation=8, grid=False)
    return alt.X(f"{field}:T", title=None, scale=alt.Scale(type="utc", nice=False, **options), axis=axis)


def render(template: str, charts: Mapping[str, Any], **facts: Any) -> str:
    """Fill in a template of this package. ``charts``: Vega-Lite by the id of the element that shows it."""
    environment = Environment(autoescape=select_autoescape(default=True), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    page = environment.from_string(_text(template))
    script: str = vl_convert.javascript_bundle(vl_version=VEGA_LITE)  # type: ignore[call-arg] # the stub forgets a default
    # "</script>" in a job's name must not end the script.
    specs = json.dumps(charts, separators=(",", ":")).replace("<", "\\u003c")
    look = Markup(_text("look.css"))  # noqa: S704
    return page.render(specs=Markup(specs), vega=Markup(script), look=look, **facts)  # noqa: S704


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
