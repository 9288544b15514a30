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


def render(template: str, charts: Mapping[str, Any], **facts: Any) -> str:
    """Fill in a template of this package. ``charts``: Vega-Lite by the id of the element that shows it."""
    environment = Environment(autoescape=select_autoescape(default=True), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    page = environment.from_string(files(__package__).joinpath(template).read_text(encoding="utf-8"))
    script: str = vl_convert.javascript_bundle(vl_version=VEGA_LITE)  # type: ignore[call-arg] # the stub forgets a default
    # "</script>" in a job's name must not end the script.
    specs = json.dumps(charts, separators=(",", ":")).replace("<", "\\u003c")
    return page.render(specs=Markup(specs), vega=Markup(script), **facts)  # noqa: S704
