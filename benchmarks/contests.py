"""Ours against the best of the rivals, in the same worlds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from joblib import Parallel, delayed

from autoscaler.config import FleetSettings
from benchmarks.figures import Figures, count
from workbench.compare import FIXED
from workbench.contest import OURS, POLICIES, Contest, play
from workbench.traces import Trace

_SEEDS = (1, 2)
_BOUND = "clairvoyant"


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is played."""

    name: str
    trace: Trace
    fleet: FleetSettings
    hours: float


def contests(title: str, text: str, loads: Sequence[Load]) -> Figures:
    """Play every load by every policy at its default."""
    asked = [(load, policy, seed) for load in loads for policy in POLICIES for seed in _SEEDS]
    played = Parallel(n_jobs=-1)(delayed(_play)(*what) for what in asked)
    results = {(load.name, policy, seed): result for (load, policy, seed), result in zip(asked, played, strict=True)}
    return Figures(
        title,
        f"{text}; {len(_SEEDS)} seeds; a look of ours every {FIXED['looks_every_seconds']:g} s, "
        "rivals at their defaults. Total: the bill, and waiting at $20 an hour. Best: of those that killed no build; a static fleet is "
        "sized by somebody who knows the load.",
        ("load", "jobs", "ours", "p95", "best", "its total", "its p95", "ours to best", _BOUND),
        tuple(_row(load.name, results) for load in loads),
    )


def _play(load: Load, policy: str, seed: int) -> dict[str, Any]:
    settings = FIXED if policy == OURS else {}
    return play(Contest(trace=load.trace, fleet=load.fleet, hours=load.hours, policy=policy, settings=settings, seed=seed))


def _row(name: str, results: Mapping[tuple[str, str, int], dict[str, Any]]) -> tuple[str, ...]:
    def mean(policy: str, what: str) -> float:
        return fmean(results[name, policy, seed][what] for seed in _SEEDS)

    rivals = [policy for policy in POLICIES if policy not in {OURS, _BOUND} and not mean(policy, "killed")]
    best = min(rivals, key=lambda policy: mean(policy, "total_usd"))
    ours, theirs = mean(OURS, "total_usd"), mean(best, "total_usd")
    told = f"${ours:,.0f}", f"{mean(OURS, 'wait_p95_s'):.0f} s", best, f"${theirs:,.0f}", f"{mean(best, 'wait_p95_s'):.0f} s"
    jobs = count(results[name, OURS, _SEEDS[0]]["jobs"])
    return name, jobs, *told, f"{ours / theirs:.2f}", f"${mean(_BOUND, 'total_usd'):,.0f}"
