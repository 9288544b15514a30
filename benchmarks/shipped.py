"""The settings of a new user on the recorded weeks, beside the fixed setting with a warm pool and all rivals at their defaults."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from joblib import Parallel, delayed

from autoscaler_workbench.experiment.compare import FIXED
from autoscaler_workbench.experiment.experiment import EVERY_POLICY, OURS, STARTS, Experiment, play, play_as_shipped
from autoscaler_workbench.experiment.rivals import WARM_RIVALS
from benchmarks.against_rivals import BOUND, WARM_BOUND, Load
from benchmarks.figures import Figures
from benchmarks.parts import recorded

_RIVALS = tuple(name for name in EVERY_POLICY if name not in {OURS, BOUND, WARM_BOUND})
_SLOWER = 0.6
_WITH_WARM_POOL: Mapping[str, Any] = {**FIXED, "warm_pool": {"instance_stores": True}}
_TITLE = "As shipped: recorded weeks"
_TEXT = (
    "Total: the bill with stopped disks, and waiting at $20 an hour. As shipped: the file that `autoscaler init` would write, and the "
    "stack's defaults. Starts of stopped instances take the share of a boot that the column says, for rivals, too. Fixed: a look every "
    "5 s, every pool with a warm pool. Best rival: the cheapest of all at their defaults that killed no build."
)
_PARTS_TITLE = "As shipped: the bill, and the hours that jobs waited"
_PARTS_TEXT = (
    "The totals above with starts of 0.6 of a boot, taken apart: what EC2 bills, and how many hours all jobs together waited for an "
    "executor. Saved: of both together, with an hour of waiting at $20."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """One run of a load. ``start``: of `STARTS`; ``policy``: "" for ours as shipped."""

    policy: str
    start: float


def measure_shipped() -> Iterator[Figures]:
    """Play every recorded week."""
    runs = [*(_Run(policy="", start=start) for start in STARTS), _Run(policy=OURS, start=min(STARTS))]
    runs += [_Run(policy=name, start=min(STARTS)) for name in _RIVALS]
    runs += [_Run(policy=name, start=_SLOWER) for name in _RIVALS if name in WARM_RIVALS]  # the others start nothing
    loads = list(recorded())
    pairs = [(load, run) for load in loads for run in runs]
    results: defaultdict[str, dict[_Run, Mapping[str, Any]]] = defaultdict(dict)
    for (load, run), result in zip(pairs, Parallel(n_jobs=-1)(delayed(_play)(*pair) for pair in pairs), strict=True):
        results[load.name][run] = result
    columns = ("week", *(f"as shipped, {start:g}" for start in STARTS), "fixed, 0.33", "best rival, 0.33", "best rival, 0.6")
    yield Figures(_TITLE, _TEXT, columns, tuple(_row(name, of) for name, of in results.items()))
    columns = ("week", "bill", "hours of waiting", "best rival", "its bill", "its hours of waiting", "saved, waiting at $20 an hour")
    yield Figures(_PARTS_TITLE, _PARTS_TEXT, columns, tuple(_parts_row(name, of) for name, of in results.items()))


def _play(load: Load, run: _Run) -> Mapping[str, Any]:
    played = Experiment(trace=load.trace, fleet=load.fleet, hours=load.hours, seed=load.seed)
    if not run.policy:
        return play_as_shipped(played, run.start, new_fleet=True)
    start_from, start_to = STARTS[run.start]
    physics = replace(played.physics, start_from=start_from, start_to=start_to)
    return play(replace(played, policy=run.policy, settings=_WITH_WARM_POOL if run.policy == OURS else {}, physics=physics))


def _row(name: str, results: Mapping[_Run, Mapping[str, Any]]) -> tuple[str, ...]:
    ours = (_usd(results[_Run(policy="", start=start)]) for start in STARTS)
    fixed = _usd(results[_Run(policy=OURS, start=min(STARTS))])
    return (name, *ours, fixed, *(_told(results, _best(results, start)) for start in (min(STARTS), _SLOWER)))


def _parts_row(name: str, results: Mapping[_Run, Mapping[str, Any]]) -> tuple[str, ...]:
    best = _best(results, _SLOWER)
    ours, rival = results[_Run(policy="", start=_SLOWER)], results[best]
    saved = f"{1 - ours['total_usd'] / rival['total_usd']:.0%}"
    return (name, *_parts(ours), best.policy, *_parts(rival), saved.replace("%", " %"))


def _parts(result: Mapping[str, Any]) -> tuple[str, str]:
    return f"${result['usd']:,.2f}", f"{result['wait_hours']:,.2f}"


def _usd(result: Mapping[str, Any]) -> str:
    return f"${result['total_usd']:,.2f}"


def _told(results: Mapping[_Run, Mapping[str, Any]], run: _Run) -> str:
    return f"{_usd(results[run])} {run.policy}"


def _best(results: Mapping[_Run, Mapping[str, Any]], start: float) -> _Run:
    """Return the run of the cheapest rival that killed no build."""
    rivals = (run for run in results if run.policy in _RIVALS and (run.start == start or run.policy not in WARM_RIVALS))
    unharmed = [run for run in rivals if not results[run]["killed"]]
    return min(unharmed, key=lambda run: (results[run]["total_usd"], run.policy))
