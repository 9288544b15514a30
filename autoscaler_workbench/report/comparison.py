"""The report of a comparison: frontiers, a table of all, and any run over time; one page that opens without a network."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

import altair as alt

from autoscaler_workbench.experiment.compare import FIXED, WITHOUT, Row, read_rows
from autoscaler_workbench.experiment.experiment import OURS, setting_text
from autoscaler_workbench.report.html import render

_BOUNDS = ("clairvoyant",)
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
_DRAWN = ("waiting", "running", "executors paid for")
_DEFAULTS = {"", setting_text(FIXED)}


def write_comparison(out: Path) -> Path:
    """Write ``report.html`` from what a comparison left in its directory; return its path."""
    everything = _means(read_rows(out / "results.csv"))
    means = [row for row in everything if WITHOUT not in row["setting"]]
    bounds = {row["trace"]: row for row in read_rows(out / "bounds.csv")}
    page = out / "report.html"
    html = render(
        "comparison.html",
        {"frontier": _frontier(means), "timeline": _timeline(out / "timelines.jsonl")},
        traces=sorted({row["trace"] for row in means}),
        verdicts=[verdict(trace, [row for row in means if row["trace"] == trace]) for trace in sorted({row["trace"] for row in means})],
        least=bounds,
        ablations=list(ablations(everything)),
        rows=sorted(means, key=lambda row: (row["trace"], row["total_usd"])),
        columns=_TABLE,
        ours=OURS,
        bounds=_BOUNDS,
        defaults=_DEFAULTS,
        seeds=max(row["seeds"] for row in means),
    )
    page.write_text(html, encoding="utf-8")
    return page


def verdict(trace: str, means: Sequence[Row]) -> dict[str, Any]:
    """Compare ours with the best rival at its defaults, and name rivals that beat a point of our frontier."""
    ours = [row for row in means if row["policy"] == OURS]
    rivals = [row for row in means if row["policy"] not in (OURS, *_BOUNDS)]
    frontier = frontier_of(ours)
    return {
        "trace": trace,
        "ours": next(iter(_with_defaults(ours)), None),
        "best": min(_with_defaults(rivals), key=lambda row: float(row["total_usd"]), default=None),
        "beyond": [f"{row['policy']} {row['setting']}".strip() for row in rivals if any(_beats(row, our) for our in frontier)],
        "killed": sum(row["killed"] for row in ours),
    }


def _with_defaults(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["setting"] in _DEFAULTS]


def ablations(means: Sequence[Row]) -> Iterator[Row]:
    """Yield what each part of the learning saves: the total in per cent and the p95 wait without it."""
    fixed = {row["trace"]: row for row in _with_defaults(means) if row["policy"] == OURS}
    for row in means:
        if WITHOUT in row["setting"] and row["trace"] in fixed:
            whole = fixed[row["trace"]]
            dearer = row["total_usd"] / whole["total_usd"] - 1 if whole["total_usd"] else 0.0
            slower = row["wait_p95_s"] - whole["wait_p95_s"]
            part = row["setting"].rpartition(f"{WITHOUT}=")[2]
            yield {"trace": row["trace"], "part": part, "total_percent": round(100 * dearer, 1), "p95_s": round(slower, 1)}


def frontier_of(rows: Sequence[Row]) -> list[Row]:
    """The settings that no other of these beats in both dollars and p95 wait."""
    return [row for row in rows if not any(_beats(other, row) for other in rows)]


def highest_drawn(rows: Sequence[Row]) -> float:
    """The longest p95 wait drawn in a frontier; waits of days would squeeze all others together."""
    longest_of_ours = max((row["wait_p95_s"] for row in rows if row["policy"] == OURS), default=0.0)
    return 2 * max(longest_of_ours, median(row["wait_p95_s"] for row in rows)) or float("inf")


def _beats(row: Row, other: Row) -> bool:
    return bool(row["usd"] < other["usd"] and row["wait_p95_s"] < other["wait_p95_s"])


def _means(rows: Iterable[Row]) -> list[Row]:
    """Means over the seeds, with the spread of the total."""
    groups: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["trace"], row["policy"], row["setting"]].append(row)
    means = []
    for (trace, policy, setting), of_seeds in groups.items():
        numbers = [name for name, value in of_seeds[0].items() if isinstance(value, int | float) and name != "seed"]
        mean_of: Row = {name: round(mean(row[name] for row in of_seeds), 4) for name in numbers}
        totals = [row["total_usd"] for row in of_seeds]
        spread = round(stdev(totals), 2) if len(totals) > 1 else 0.0
        means.append({"trace": trace, "policy": policy, "setting": setting, "seeds": len(of_seeds), "spread": spread, **mean_of})
    return means


def _frontier(means: Sequence[Row]) -> dict[str, Any]:
    """Dollars against p95 wait, a panel a trace: each policy's settings as a line, ours thick."""
    highest = {trace: highest_drawn([row for row in means if row["trace"] == trace]) for trace in {row["trace"] for row in means}}
    shown = [
        {name: row[name] for name in ("trace", "policy", "setting", "usd", "wait_p95_s", "total_usd", "killed")}
        | {"kind": OURS if row["policy"] == OURS else "bound" if row["policy"] in _BOUNDS else "rival"}
        | {"drawn_s": min(row["wait_p95_s"], highest[row["trace"]])}
        for row in means
    ]
    is_ours = alt.datum.policy == OURS
    base = alt.Chart(alt.NamedData(name="means")).encode(
        x=alt.X("usd:Q", title="dollars", scale=alt.Scale(type="log", nice=False, padding=10)),
        y=alt.Y("drawn_s:Q", title="p95 wait, s"),
        color=alt.Color("policy:N", legend=alt.Legend(columns=8)),
    )
    lines = base.mark_line(opacity=0.6).encode(order="usd:Q", size=alt.condition(is_ours, alt.value(4), alt.value(1)))
    dots = base.mark_point(filled=True, opacity=0.9).encode(
        shape=alt.Shape("kind:N", legend=None),
        size=alt.condition(is_ours, alt.value(140), alt.value(50)),
        tooltip=["policy:N", "setting:N", "usd:Q", "wait_p95_s:Q", "total_usd:Q", "killed:Q"],
    )
    panels = (lines + dots).properties(width=520, height=300).facet(facet=alt.Facet("trace:N", title=None), columns=2)
    chart = panels.resolve_scale(x="independent", y="independent").configure_legend(orient="bottom")
    written: dict[str, Any] = chart.to_dict()
    return written | {"datasets": {"means": shown}}


def _timeline(file: Path) -> dict[str, Any]:
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
            x=alt.X("at_ms:T", title=None),
            y=alt.Y("count:Q", title="executors"),
            color=alt.Color("what:N", legend=alt.Legend(orient="bottom", title=None)),
        )
        .transform_filter("datum.run == picked")
        .transform_flatten(["at", *_DRAWN])
        .transform_fold(list(_DRAWN), as_=["what", "count"])
        .transform_calculate(at_ms="1000 * datum.at")
        .add_params(picked)
        .properties(width="container", height=260)
    )
    written: dict[str, Any] = chart.to_dict()
    return written | {"datasets": {"runs": rows}}


def _series(points: Sequence[Sequence[float]]) -> dict[str, Any]:
    return dict(zip(("at", *_DRAWN), zip(*points, strict=True), strict=True))
