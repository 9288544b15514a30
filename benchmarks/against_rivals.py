"""Ours against the best of the rivals, in the same worlds."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from joblib import Parallel, delayed

from autoscaler.config import FleetSettings
from autoscaler_workbench.experiment.compare import FIXED
from autoscaler_workbench.experiment.experiment import OURS, POLICIES, Experiment, play
from autoscaler_workbench.simulate.traces import Trace
from benchmarks.figures import Figures, count

_SEEDS = (1, 2)
BOUND, WARM_BOUND = "clairvoyant", "clairvoyant-warm"
# What the runs of one load by one policy measured, by its name and the policy.
_Results = Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is played. ``seed``: the world's; loads of the same name are told of by their mean."""

    name: str
    trace: Trace
    fleet: FleetSettings
    hours: float
    seed: int = 1


def in_some_worlds(loads: Sequence[Load]) -> list[Load]:
    """Each of them in worlds whose boots differ."""
    return [replace(load, seed=seed) for load in loads for seed in _SEEDS]


def against_rivals(title: str, text: str, loads: Sequence[Load], policies: Sequence[str] = POLICIES, bound: str = BOUND) -> Figures:
    """Play every load by these policies, each at its default."""
    asked = [(load, policy) for load in loads for policy in policies]
    played = Parallel(n_jobs=-1)(delayed(_play)(*what) for what in asked)
    results: defaultdict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for (load, policy), result in zip(asked, played, strict=True):
        results[load.name, policy].append(result)
    names = list(dict.fromkeys(load.name for load in loads))
    return Figures(
        title,
        f"{text}; means of {len(loads) // len(names)} runs; a look of ours every {FIXED['looks_every_seconds']:g} s, "
        "rivals at their defaults. Total: the bill, and waiting at $20 an hour. Best: the cheapest that killed no build; a static fleet is "
        "sized by somebody who knows the load.",
        ("load", "jobs", "ours", "p95", "best", "its total", "its p95", "ours to best", bound),
        tuple(_row(name, results, policies, bound) for name in names),
    )


def _play(load: Load, policy: str) -> dict[str, Any]:
    settings = FIXED if policy == OURS else {}
    return play(Experiment(trace=load.trace, fleet=load.fleet, hours=load.hours, policy=policy, settings=settings, seed=load.seed))


def _row(name: str, results: _Results, policies: Sequence[str], bound: str) -> tuple[str, ...]:
    def mean(policy: str, what: str) -> float:
        return fmean(result[what] for result in results[name, policy])

    rivals = [policy for policy in policies if policy not in {OURS, BOUND, WARM_BOUND} and not mean(policy, "killed")]
    best = min(rivals, key=lambda policy: mean(policy, "total_usd"))
    ours, theirs = mean(OURS, "total_usd"), mean(best, "total_usd")
    told = f"${ours:,.0f}", f"{mean(OURS, 'wait_p95_s'):.0f} s", best, f"${theirs:,.0f}", f"{mean(best, 'wait_p95_s'):.0f} s"
    return name, count(mean(OURS, "jobs")), *told, f"{ours / theirs:.2f}", f"${mean(bound, 'total_usd'):,.0f}"
