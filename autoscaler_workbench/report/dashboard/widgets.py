"""The widgets of the template's dashboard, with the metrics that were published here instead of to AWS."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

from autoscaler_workbench.report.dashboard.alarms import Published, statistic_of
from autoscaler_workbench.report.dashboard.cloudformation import defaults_of, made_by, read_template

_POINTS = 360
_SEARCH = re.compile(r"SEARCH\('\{(?P<schema>[^}]+)\} (?P<wanted>[^']*)', '(?P<stat>\w+)', \d+\)")
_WANTED = re.compile(r'(\w+)="([^"]*)"')
_PROPERTY = re.compile(r"\$\{PROP\('Dim\.(\w+)'\)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One line: epoch seconds and values. None: from here on nothing was published, until the next value."""

    label: str
    points: tuple[tuple[float, float | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Widget:
    """One graph. ``elsewhere``: metrics that AWS itself publishes, and nobody does here."""

    title: str
    unit: str
    stacked: bool
    width: int  # of 24 columns
    series: tuple[Series, ...]
    elsewhere: bool


def read_widgets(file: Path, fleet: str, published: Published, **parameters: str) -> list[Widget]:
    """The graphs of a template's dashboard, with what they show of what was published; ``parameters`` other than their defaults."""
    board = json.loads(dashboard_body(file, fleet, **parameters))
    index: dict[str, list[tuple[float, dict[str, str], tuple[float, ...]]]] = {}
    for at, datum in published:
        index.setdefault(datum.name, []).append((at, dict(datum.dimensions), datum.values))
    span = (min((at for at, _ in published), default=0.0), max((at for at, _ in published), default=0.0))
    return [_widget(widget, index, span) for widget in board["widgets"] if widget["type"] == "metric"]


def dashboard_body(file: Path, fleet: str, **parameters: str) -> str:
    """The dashboard's JSON; ``parameters`` other than their defaults."""
    template = read_template(file)
    names = {name: name for name in template["Resources"]} | {f"{name}.Arn": name for name in template["Resources"]}
    given = {"AWS::Region": "us-west-2"} | defaults_of(template) | parameters | {"FleetName": fleet} | names
    body: str = made_by(template, given)["Dashboard"]["Properties"]["DashboardBody"]
    return body.replace("${!", "${")


def _widget(raw: Mapping[str, Any], index: Mapping[str, Any], span: tuple[float, float]) -> Widget:
    facts = raw["properties"]
    ours = [metric for metric in facts["metrics"] if not str(metric[0]).startswith("AWS/")]
    return Widget(
        title=facts["title"],
        unit=facts.get("yAxis", {}).get("left", {}).get("label", ""),
        stacked=facts["stacked"],
        width=raw["width"],
        series=tuple(series for metric in ours for series in _series(metric, index, span)),
        elsewhere=not ours,
    )


def _series(metric: Sequence[Any], index: Mapping[str, Any], span: tuple[float, float]) -> Iterator[Series]:
    if isinstance(metric[0], dict):
        yield from _found(metric[0], index, span)
        return
    *named, options = metric
    name, dimensions = named[1], dict(zip(named[2::2], named[3::2], strict=True))
    mine = [(at, values) for at, has, values in index.get(name, []) if has == dimensions]
    if mine:
        yield Series(label=options.get("label", name), points=_resampled(mine, options["stat"], span))


def _found(options: Mapping[str, str], index: Mapping[str, Any], span: tuple[float, float]) -> Iterator[Series]:
    """What a search finds: each set of dimensions with exactly the names of its schema is a line."""
    asked = _SEARCH.fullmatch(options["expression"])
    if asked is None:
        raise ValueError(f"this search is not understood: {options['expression']}")
    wanted = dict(_WANTED.findall(asked["wanted"]))
    name, names = wanted.pop("MetricName"), set(asked["schema"].split(",")[1:])
    lines: dict[tuple[tuple[str, str], ...], list[tuple[float, tuple[float, ...]]]] = {}
    for at, has, values in index.get(name, []):
        if set(has) == names and wanted.items() <= has.items():
            lines.setdefault(tuple(has.items()), []).append((at, values))
    shown = _PROPERTY.fullmatch(options["label"])
    for has_items, mine in lines.items():
        label = dict(has_items)[shown[1]] if shown else options["label"]
        yield Series(label=label, points=_resampled(mine, asked["stat"], span))


def _resampled(
    mine: Sequence[tuple[float, tuple[float, ...]]], stat: str, span: tuple[float, float]
) -> tuple[tuple[float, float | None], ...]:
    """As many points as a graph can show, each a statistic over whole minutes; a line that would bridge what is missing is broken."""
    # Of parts of a minute, a sum would go up and down with the number of minutes in each.
    step = 60.0 * max(1, ceil((span[1] - span[0]) / _POINTS / 60))
    buckets: dict[int, list[float]] = {}
    for at, values in mine:
        buckets.setdefault(int((at - span[0]) // step), []).extend(values)
    points: list[tuple[float, float | None]] = []
    for number, together in sorted(buckets.items()):
        points.append((span[0] + number * step, round(statistic_of(stat, together), 4)))
        if number + 1 not in buckets:
            points.append((span[0] + (number + 1) * step, None))
    return tuple(points)
