"""Six instances with ten jobs each were "chosen on a hunch": a model of such builds, how far it can be trusted, and what else there was."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from typing import Any

from autoscaler.config import check
from autoscaler_workbench.experiment.experiment import OURS, Experiment, play
from benchmarks.distributed_build import BASEROCK, INSTANCES, JOBS, Scenario, as_trace, cache_share, fit
from benchmarks.figures import Figures

_EXECUTOR_USD = 0.068  # c6i.4xlarge, ten jobs on sixteen vCPUs: $0.68 an hour, us-west-2
_TRIED = tuple(product((1, 2, 4, 6, 8), (5, 10, 20)))
_POLICIES = ("static", OURS)


def measure() -> Iterator[Figures]:
    """Judge the model, then sweep."""
    cache = cache_share()
    models = {scenario.name: fit(scenario, cache) for scenario in BASEROCK}
    rows = []
    for told in BASEROCK:
        errors = (models[told.name].seconds(other, INSTANCES) / other.six - 1.0 for other in BASEROCK)
        rows.append((told.name, f"{models[told.name].head:.0%}", *(f"{error:+.0%}" for error in errors)))
    yield Figures(
        "Baserock's three scenarios: how far a small model reaches",
        f"A serial head, parallel tasks, a shared cache ({cache:.1%} of the time on one instance, from the scenario that tells when its "
        "result was ready). Fitted on one scenario's six instances, judged on the others: the predicted time less the measured one. "
        "The heads differ too much for one fit to serve all, so each scenario's own head is used below.",
        ("fitted on", "head", *(f"error on {other.name}" for other in BASEROCK)),
        tuple(rows),
    )
    asked = list(product(BASEROCK, _TRIED, _POLICIES))
    with ProcessPoolExecutor() as pool:
        played = dict(zip(asked, pool.map(_play, *zip(*asked, strict=True)), strict=True))
    yield Figures(
        "Baserock: instances times executors",
        "Minutes until all is stored, and dollars, each scenario with its own head: static instances / the same number as a limit for this "
        f"autoscaler, which boots from nothing in 3 minutes. {_EXECUTOR_USD * JOBS:.2f} dollars an hour for ten jobs; an instance's price "
        "and speed grow with its jobs.",
        ("instances x jobs", *(f"{scenario.name}: {what}" for scenario in BASEROCK for what in ("min", "$"))),
        tuple(_row(instances, jobs, played) for instances, jobs in _TRIED),
    )


def _row(instances: int, jobs: int, played: dict[Any, dict[str, Any]]) -> tuple[str, ...]:
    cells = []
    for scenario in BASEROCK:
        runs = [played[scenario, (instances, jobs), policy] for policy in _POLICIES]
        cells.append(" / ".join(f"{run['done_after_s'] / 60:.0f}" for run in runs))
        cells.append(" / ".join(f"{run['usd']:.2f}" for run in runs))
    return (f"{instances} x {jobs}", *cells)


def _play(scenario: Scenario, size: tuple[int, int], policy: str) -> dict[str, Any]:
    instances, jobs = size
    pool = {
        "labels": ["build"],
        "executors": jobs,
        "usd_per_hour": _EXECUTOR_USD * jobs,
        "instance_types": ["c6i.4xlarge"],
        "platform": "linux",
        "launch_template": "build",
        "max_agents": instances,
        "boot_seconds": 180,
    }
    raw = {
        "fleet": "baserock",
        "limits": {"max_agents": instances, "max_launches_per_hour": 100, "max_usd_per_hour": 100, "max_usd_per_month": 10_000},
        "controllers": {"main": {"url": "http://jenkins.invalid/"}},
        "defaults": {"queue_maturity_seconds": 0},
        "pools": {"build": pool},
    }
    trace = as_trace(scenario, fit(scenario, cache_share()), spread=instances > 1)
    settings = {"share": 1.0} if policy == "static" else {"looks_every_seconds": 15.0}
    return play(Experiment(trace=trace, fleet=check(raw, "baserock"), hours=0.02, policy=policy, settings=settings))
