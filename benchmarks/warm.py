"""What stopping agents brings: ours with and without a warm pool, the clairvoyants, and starts that are no quicker than boots."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from joblib import Parallel, delayed

from autoscaler_workbench.experiment.compare import FIXED
from autoscaler_workbench.experiment.experiment import OURS, Experiment, play
from autoscaler_workbench.experiment.rivals import WARM_RIVALS
from autoscaler_workbench.fakes.world.physics import CALM, Physics
from benchmarks import full, made_up
from benchmarks.against_rivals import BOUND, WARM_BOUND, Load
from benchmarks.figures import Figures
from benchmarks.parts import recorded

# A baked image may leave nothing to be gained: 70 s either way (terraform-provider-namecheap, issue 327).
SLOW = Physics(start_from=0.9, start_to=1.1)
_WARM: Mapping[str, Any] = {"warm_pool": {"instance_stores": True}}
_WITHOUT, _WITH, _SLOW = (OURS, "", CALM), (OURS, "warm", CALM), (OURS, "warm", SLOW)
_RIVALS = tuple(name for name in WARM_RIVALS if name != WARM_BOUND)
_Run = tuple[str, str, Physics]


def measure() -> Iterator[Figures]:
    """Play every load with and without."""
    for title, loads, rivals in (
        ("Stopped agents: recorded weeks", list(recorded()), _RIVALS),
        ("Stopped agents: made-up loads", made_up.loads(), ()),
        ("Stopped agents: full fleets", full.loads(), _RIVALS),
    ):
        yield _figures(title, loads, rivals)


def _figures(title: str, loads: Sequence[Load], rivals: Sequence[str]) -> Figures:
    runs: list[_Run] = [_WITHOUT, _WITH, _SLOW, *((name, "", CALM) for name in (BOUND, WARM_BOUND, *rivals))]
    asked = [(load, run) for load in loads for run in runs]
    played = Parallel(n_jobs=-1)(delayed(_play)(*what) for what in asked)
    results: defaultdict[tuple[str, _Run], list[Mapping[str, Any]]] = defaultdict(list)
    for (load, run), result in zip(asked, played, strict=True):
        results[load.name, run].append(result)
    rows = [_row(name, results, rivals) for name in dict.fromkeys(load.name for load in loads)]
    return Figures(
        title,
        "Total: the bill with stopped disks, and waiting at $20 an hour; a start takes 0.15 to 0.5 of a boot, slow: 0.9 to 1.1. Saved of "
        "what is possible: against what a clairvoyant saves by stopping. Best rival: the cheapest of those that stop instances, too.",
        (
            "load",
            "without",
            "with",
            "ratio",
            "p95 without",
            "with",
            "of what is possible",
            "slow start",
            *(("best rival",) if rivals else ()),
        ),
        (*rows, _means(rows)),
    )


def _play(load: Load, run: _Run) -> Mapping[str, Any]:
    policy, warm, physics = run
    settings: Mapping[str, Any] = {**FIXED, **(_WARM if warm else {})} if policy == OURS else {}
    return play(
        Experiment(trace=load.trace, fleet=load.fleet, hours=load.hours, policy=policy, settings=settings, seed=load.seed, physics=physics)
    )


def _row(name: str, results: Mapping[tuple[str, _Run], Sequence[Mapping[str, Any]]], rivals: Sequence[str]) -> tuple[str, ...]:
    def mean(run: _Run, what: str = "total_usd") -> float:
        return fmean(result[what] for result in results[name, run])

    without, with_, slow = mean(_WITHOUT), mean(_WITH), mean(_SLOW)
    possible = mean((BOUND, "", CALM)) - mean((WARM_BOUND, "", CALM))
    best = min(((mean((rival, "", CALM)), rival) for rival in rivals if not mean((rival, "", CALM), "killed")), default=None)
    return (
        name,
        f"${without:,.2f}",
        f"${with_:,.2f}",
        f"{with_ / without:.3f}",
        f"{mean(_WITHOUT, 'wait_p95_s'):.0f} s",
        f"{mean(_WITH, 'wait_p95_s'):.0f} s",
        f"{(without - with_) / possible:.0%}" if possible > 0 else "nothing is",
        f"{slow / without:.3f}",
        *((f"${best[0]:,.2f} {best[1]}" if best else "all killed builds",) if rivals else ()),
    )


def _means(rows: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    ratio, slow = (fmean(float(row[column]) for row in rows) for column in (3, 7))
    return ("mean", "", "", f"{ratio:.3f}", "", "", "", f"{slow:.3f}", *("" for _ in rows[0][8:]))
