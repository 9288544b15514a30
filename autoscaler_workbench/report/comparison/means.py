"""What a comparison's runs say: means over the seeds, verdicts by trace, frontiers, and what each part of the learning saves."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from statistics import mean, median, stdev
from typing import Any

from autoscaler_workbench.experiment.compare import FIXED, SHIPPED, WITHOUT, Row
from autoscaler_workbench.experiment.experiment import OURS, setting_text

BOUNDS = ("clairvoyant", "clairvoyant-warm")
DEFAULTS = {"", setting_text(SHIPPED)}
_BEST = 3


def verdict(trace: str, means: Sequence[Row]) -> dict[str, Any]:
    """Compare ours with the best rival at its defaults, and name rivals that beat a point of our frontier."""
    ours = [row for row in means if row["policy"] == OURS]
    rivals = [row for row in means if row["policy"] not in (OURS, *BOUNDS)]
    frontier = frontier_of(ours)
    return {
        "trace": trace,
        "ours": next(iter(with_defaults(ours)), None),
        "best": min(with_defaults(rivals), key=lambda row: float(row["total_usd"]), default=None),
        "beyond": [f"{row['policy']} {row['setting']}".strip() for row in rivals if any(_beats(row, our) for our in frontier)],
        "killed": sum(row["killed"] for row in ours),
    }


def with_defaults(rows: Sequence[Row]) -> list[Row]:
    """Those at the settings that their makers chose."""
    return [row for row in rows if row["setting"] in DEFAULTS]


def ablations(means: Sequence[Row]) -> Iterator[Row]:
    """Yield what each part of the learning saves: the total in per cent and the p95 wait without it."""
    fixed = {row["trace"]: row for row in means if row["policy"] == OURS and row["setting"] == setting_text(FIXED)}
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


def means_of(rows: Iterable[Row]) -> list[Row]:
    """Take means over the seeds, with the spread of the total."""
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


def highlighted(means: Sequence[Row]) -> list[str]:
    """The policies that a picture shows first: ours, the best three rivals over all traces at their defaults, and the bound."""
    lowest: dict[str, float] = {}
    totals: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for row in with_defaults(means):
        if row["policy"] not in (OURS, *BOUNDS):
            totals[row["policy"]].append((row["trace"], row["total_usd"]))
            lowest[row["trace"]] = min(lowest.get(row["trace"], float("inf")), row["total_usd"])
    dearer = {policy: mean(usd / (lowest[trace] or 1.0) for trace, usd in of) for policy, of in totals.items()}
    best = sorted(dearer, key=lambda policy: (-len(totals[policy]), dearer[policy], policy))[:_BEST]
    present = {row["policy"] for row in means}
    return [policy for policy in (OURS, *best, *BOUNDS) if policy in present]
