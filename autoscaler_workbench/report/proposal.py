"""The page of a proposal: what to change in words, what it saves, what shorter waits would cost, and all that was tried."""

from pathlib import Path
from typing import Any

import altair as alt

from autoscaler_workbench.experiment.tune import Proposal, TuningTask, in_words
from autoscaler_workbench.report.html import CONFIG, DOLLARS, render

_COLOURS = {"now": "#9aa0a6", "proposed": "#1f77d0", "the same with another price of waiting": "#e07b1a"}
_MARGIN = 0.08


def write_proposal(proposal: Proposal, task: TuningTask, out: Path) -> Path:
    """Write ``report.html`` into a directory that is there; return its path."""
    whole, *details = in_words(proposal, task)
    page = out / "report.html"
    html = render(
        "proposal.html",
        {"waits": _waits(proposal)},
        trace=task.trace.name,
        hours=f"{task.hours:g}",
        seeds=task.seeds,
        whole=whole,
        details=details,
        colours=_COLOURS,
        before=proposal.before,
        after=proposal.after,
        tried=sorted(proposal.tried, key=lambda row: float(row["total_usd"])),
    )
    page.write_text(html, encoding="utf-8")
    return page


def _waits(proposal: Proposal) -> dict[str, Any]:
    """Dollars against p95 wait: the fleet as it is, the proposal, and the proposal with other prices of waiting."""
    now, proposed, others = _COLOURS
    rows = [_row(row, proposed if row is proposal.after else others) for row in proposal.frontier]
    rows += [_row(proposal.before, now)] if proposal.before is not proposal.after else []
    base = alt.Chart(alt.NamedData("rows")).encode(x=_x(rows), y=_y(rows))
    scale = alt.Scale(domain=list(_COLOURS), range=list(_COLOURS.values()))
    line = base.mark_line(color="#9aa0a6", strokeWidth=1).encode(order="usd:Q").transform_filter(f"datum.what != '{now}'")
    tips = [
        alt.Tooltip("setting:N"),
        alt.Tooltip("usd:Q", title="dollars", format=",.0f"),
        alt.Tooltip("wait:Q", title="p95 wait, seconds"),
    ]
    dots = base.mark_point(filled=True, size=120, opacity=1).encode(color=alt.Color("what:N", scale=scale), tooltip=tips)
    config = CONFIG | {"background": "transparent", "legend": {"disable": True}, "autosize": {"type": "fit", "contains": "padding"}}
    written: dict[str, Any] = alt.layer(line, dots).properties(width="container", height=260).to_dict()
    return written | {"datasets": {"rows": rows}, "config": config}


def _row(row: dict[str, Any], what: str) -> dict[str, Any]:
    return {"usd": round(row["usd"], 2), "wait": round(row["wait_p95_s"], 1), "setting": row["setting"] or "as it is now", "what": what}


def _x(rows: list[dict[str, Any]]) -> alt.X:
    axis = alt.Axis(labelExpr=DOLLARS, labelOverlap="greedy", labelSeparation=6, tickCount=6)
    return alt.X("usd:Q", title="the bill, dollars", scale=_scale(rows, "usd"), axis=axis)


def _y(rows: list[dict[str, Any]]) -> alt.Y:
    return alt.Y("wait:Q", title="p95 wait, seconds", scale=_scale(rows, "wait"), axis=alt.Axis(format=",.0f", tickCount=6))


def _scale(rows: list[dict[str, Any]], name: str) -> alt.Scale:
    """From the least to the most, with a margin: what differs by little is to be told apart."""
    least, most = min(row[name] for row in rows), max(row[name] for row in rows)
    margin = _MARGIN * (most - least) or 1.0
    return alt.Scale(domain=[max(0.0, least - margin), most + margin], nice=False)
