"""The page of a comparison, which opens without a network, and its first impression in words."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from autoscaler_workbench.experiment.compare import WITHOUT, Row, read_rows
from autoscaler_workbench.experiment.experiment import OURS
from autoscaler_workbench.report.comparison import charts
from autoscaler_workbench.report.comparison.means import BOUNDS, DEFAULTS, ablations, highlighted, means_of, verdict
from autoscaler_workbench.report.comparison.words import impression
from autoscaler_workbench.report.html import render

_TABLE = (
    "total_usd",
    "usd",
    "wait_mean_s",
    "wait_p50_s",
    "wait_p95_s",
    "wait_p99_s",
    "utilisation",
    "launches",
    "early_terminations",
    "killed",
)


def write_comparison(out: Path) -> tuple[Path, list[str]]:
    """Write ``report.html`` from what a comparison left in its directory; return its path and the first impression, a line a trace."""
    everything = means_of(read_rows(out / "results.csv"))
    means = [row for row in everything if WITHOUT not in row["setting"]]
    traces = sorted({row["trace"] for row in means})
    verdicts = [verdict(trace, [row for row in means if row["trace"] == trace]) for trace in traces]
    impressions = [impression(one, *_lengths(out).get(one["trace"], (None, None))) for one in verdicts]
    facts = _pictures(means, traces, out) | {"traces": traces, "verdicts": verdicts, "impressions": impressions}
    html = render(
        "comparison/comparison.html",
        least={row["trace"]: row for row in read_rows(out / "bounds.csv")},
        ablations=list(ablations(everything)),
        rows=sorted(means, key=lambda row: (row["trace"], row["total_usd"])),
        columns=_TABLE,
        ours=OURS,
        bounds=BOUNDS,
        defaults=DEFAULTS,
        seeds=max(row["seeds"] for row in means),
        **facts,
    )
    page = out / "report.html"
    page.write_text(html, encoding="utf-8")
    return page, impressions


def _pictures(means: Sequence[Row], traces: Sequence[str], out: Path) -> dict[str, Any]:
    first = highlighted(means)
    colours = charts.palette(first)
    frontiers = (charts.frontier([row for row in means if row["trace"] == trace], colours) for trace in traces)
    return {
        "charts": {f"frontier-{number}": one for number, one in enumerate(frontiers)}
        | {"timeline": charts.timeline(out / "timelines.jsonl")},
        "colours": colours | {charts.OTHERS: charts.OTHERS_COLOUR},
        "chosen_colour": charts.CHOSEN_COLOUR,
        "others": _others(means, first),
    }


def _others(means: Sequence[Row], first: Sequence[str]) -> list[str]:
    return sorted({row["policy"] for row in means} - set(first))


def _lengths(out: Path) -> dict[str, tuple[float, float]]:
    """The hours of each trace that were measured, and those of its lead-in, as the comparison noted them."""
    file = out / "comparison.json"
    noted: dict[str, list[Any]] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return {trace: (of[2], of[4]) for trace, of in noted.items()}
