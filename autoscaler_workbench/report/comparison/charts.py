"""The charts of a comparison: dollars against waiting, a picture a trace, and one run over time.

At most six lines stand out: ours, the best three, the bound, and the one that the reader chooses.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt

from autoscaler_workbench.experiment.compare import Row
from autoscaler_workbench.experiment.experiment import OURS
from autoscaler_workbench.report.comparison.means import highest_drawn
from autoscaler_workbench.report.html import CONFIG, DOLLARS, time_axis

OTHERS = "others"
OTHERS_COLOUR, CHOSEN_COLOUR = "#9aa0a6", "#e0218a"
_COLOURS = ("#1f77d0", "#e07b1a", "#3f9b4f", "#9b6bc4", "#b08d00")  # in the order in which they stand out
_DRAWN = ("waiting", "running", "executors paid for")
_NUMBERS = ("usd", "wait_p95_s", "total_usd", "killed")
_PAGE = CONFIG | {"background": "transparent", "legend": {"disable": True}, "autosize": {"type": "fit", "contains": "padding"}}


def palette(first: Sequence[str]) -> dict[str, str]:
    """The colours of the policies that stand out."""
    return dict(zip(first, _COLOURS, strict=False))


def frontier(means: Sequence[Row], colours: dict[str, str]) -> dict[str, Any]:
    """Dollars against p95 wait on one trace: each policy's settings as a line, ours thick; what stands out lies above the others."""
    highest = highest_drawn(means)
    shown = [
        {name: row[name] for name in ("policy", "setting", *_NUMBERS)}
        | {"shown": row["policy"] if row["policy"] in colours else OTHERS, "drawn_s": min(row["wait_p95_s"], highest)}
        for row in sorted(means, key=lambda row: _place(row["policy"], colours))
    ]
    scale = alt.Scale(domain=[*colours, OTHERS], range=[*colours.values(), OTHERS_COLOUR])
    is_ours, stands_out = f"datum.policy == '{OURS}'", f"datum.shown != '{OTHERS}' || datum.policy == chosen"
    base = alt.Chart(alt.NamedData("means")).encode(
        x=alt.X("usd:Q", title="dollars", scale=alt.Scale(type="log", nice=False, padding=10), axis=_dollar_axis()),
        y=alt.Y("drawn_s:Q", title="p95 wait, seconds", axis=alt.Axis(format=",.0f")),
        color=alt.condition("datum.policy == chosen", alt.value(CHOSEN_COLOUR), alt.Color("shown:N", scale=scale)),
        opacity=alt.condition(stands_out, alt.value(1.0), alt.value(0.4)),
        detail="policy:N",
    )
    width = alt.when(is_ours).then(alt.value(3.5)).when(stands_out).then(alt.value(1.8)).otherwise(alt.value(1.0))
    lines = base.mark_line().encode(order="usd:Q", strokeWidth=width)
    dots = base.mark_point(filled=True).encode(size=alt.condition(is_ours, alt.value(110), alt.value(40)), tooltip=_tips())
    chart = alt.layer(lines, dots).add_params(alt.param(name="chosen", value="")).properties(width="container", height=300)
    written: dict[str, Any] = chart.to_dict()
    return written | {"datasets": {"means": shown}, "config": _PAGE}


def _place(policy: str, colours: dict[str, str]) -> tuple[int, str]:
    """What is drawn last lies on top: ours."""
    names = list(colours)
    return (-names.index(policy) if policy in names else -len(names) - 1, policy)


def _dollar_axis() -> alt.Axis:
    return alt.Axis(labelExpr=DOLLARS, labelOverlap="greedy", labelSeparation=6, tickCount=6, grid=True)


def _tips() -> list[alt.Tooltip]:
    titles = ("dollars", "p95 wait, seconds", "with waiting, dollars", "builds killed")
    numbers = [alt.Tooltip(f"{name}:Q", title=title, format=",.0f") for name, title in zip(_NUMBERS, titles, strict=True)]
    return [alt.Tooltip("policy:N"), alt.Tooltip("setting:N"), *numbers]


def timeline(file: Path) -> dict[str, Any]:
    """Builds waiting and running and executors paid for, over time, of the run that the reader picks."""
    runs = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []
    rows = [{"run": f"{run['trace']} · {run['policy']} {run['setting']}".strip(), **_series(run["points"])} for run in runs]
    names = sorted({row["run"] for row in rows})
    picked = alt.param(
        name="picked",
        value=next((n for n in names if OURS in n), names[0] if names else ""),
        bind=alt.binding_select(options=names, name="run "),
    )
    chart = (
        alt.Chart(alt.NamedData(name="runs"))
        .mark_line(interpolate="step-after")
        .encode(
            x=time_axis("at_ms"),
            y=alt.Y("count:Q", title="executors"),
            color=alt.Color("what:N", sort=list(_DRAWN), scale=alt.Scale(domain=list(_DRAWN), range=["#e07b1a", "#3f9b4f", "#1f77d0"])),
        )
        .transform_filter("datum.run == picked")
        .transform_flatten(["at", *_DRAWN])
        .transform_fold(list(_DRAWN), as_=["what", "count"])
        .transform_calculate(at_ms="1000 * datum.at")
        .add_params(picked)
        .properties(width="container", height=260)
    )
    written: dict[str, Any] = chart.to_dict()
    legend = {"legend": {"orient": "bottom", "title": None}}
    return written | {"datasets": {"runs": rows}, "config": _PAGE | legend}


def _series(points: Sequence[Sequence[float]]) -> dict[str, Any]:
    return dict(zip(("at", *_DRAWN), zip(*points, strict=True), strict=True))
