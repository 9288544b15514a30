"""What `status` estimates that ready images and warm pools would have saved, against the same recorded weeks played with them."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from math import ceil
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from autoscaler.config import check, load_settings
from autoscaler.control import measure
from autoscaler.control.costs import last_days, note_costs
from autoscaler.control.observe import observe_without_instances
from autoscaler.domain.facts.costs import Boots
from autoscaler.domain.learn import assess
from autoscaler.domain.report.shorter_boots import image_saves, ready_image_seconds, warm_pool_saves
from autoscaler.domain.situation.pool_view import PoolView
from autoscaler_workbench.experiment.measures import measure_run
from autoscaler_workbench.simulate.drive import InProcess
from autoscaler_workbench.simulate.fleets import EXAMPLE_FLEET, fleet_for
from autoscaler_workbench.simulate.run import Run, prepare
from autoscaler_workbench.simulate.traces import MXNET, Trace, load_trace
from benchmarks.figures import Figures, count

_WEEK = 168.0
_NO_LIMITS = {"max_launches_per_hour": 100_000, "max_usd_per_hour": 100_000, "max_usd_per_month": 10_000_000}
_Raw = dict[str, Any]
# Name, trace, and what is changed of the limits of its fleet.
_RUNS: tuple[tuple[str, Path, _Raw], ...] = (
    ("linkerd_gha", MXNET.parent / "linkerd_gha.csv.gz", _NO_LIMITS),
    ("mxnet_stages", MXNET, _NO_LIMITS),
    ("mxnet_stages, 60 launches and $150 an hour", MXNET, {}),
)


class _Noting(InProcess):
    """The production passes, which note what jobs and boots cost."""

    def publish_metrics(self) -> None:
        """Learn as when publishing, and note the costs."""
        situation, lessons = measure.observe_and_learn(self.ports, self.fleet, self.ports.state.read(), self.invocation())
        note_costs(self.ports, situation, lessons)

    def estimates(self, hours: float) -> tuple[float, float]:
        """Estimate what ready images and warm pools would have saved in all pools together."""
        stored = self.ports.state.read()
        situation = assess(observe_without_instances(self.ports, self.fleet, stored, self.invocation()), self.fleet)
        days = last_days(self.ports, ceil(hours / 24) + 2, situation.memory.month)  # the load before the week, and until its jobs are done
        boots = [(pool, [day.boots.get(pool.name, Boots()) for day in days]) for pool in situation.pools.values()]
        images, warm_pools = (sum(_priced(pool, way(pool, days)) for pool, days in boots) for way in (image_saves, warm_pool_saves))
        return images, warm_pools


def _priced(pool: PoolView, saved: tuple[float, float]) -> float:
    """Put a price on the hours that jobs wait."""
    return saved[0] + saved[1] * pool.spec.wait_usd_per_hour


def measure_estimates(hours: float = _WEEK) -> Iterator[Figures]:
    """Play each week as it is, with boots of ready images, and with warm pools."""
    yield Figures(
        "What shorter boots would have saved",
        "Recorded weeks, a look a minute, one seed; dollars of bill and waiting, at $20 an hour. Estimated: what status would say of all "
        "pools together. Played: the same week with boots of ready images, and with a warm pool in every pool.",
        ("trace", "bill and waiting", "image, estimated", "played", "warm pool, estimated", "played"),
        tuple(Parallel(n_jobs=-1)(delayed(_row)(*run, hours) for run in _RUNS)),
    )


def _row(name: str, file: Path, limits: _Raw, hours: float) -> tuple[str, ...]:
    trace = load_trace(file, hours=hours)
    settings = load_settings(EXAMPLE_FLEET) if file == MXNET else fleet_for(trace)
    raw: _Raw = settings.model_dump(mode="json", exclude_unset=True)
    raw["limits"] |= limits
    boots = {pool: settings.tuned("boot_seconds", pool) for pool in settings.pools}
    run, passes = _played(raw, trace, hours)
    now, (image, warm) = _usd(run, trace), passes.estimates(hours)
    with_images = _changed(raw, lambda pool: {"boot_seconds": ready_image_seconds(boots[pool])})
    stopping = _changed(raw, lambda _: {"warm_pool": {"instance_stores": True}})
    saved = [now - _usd(_played(other, trace, hours)[0], trace) for other in (with_images, stopping)]
    return name, count(now), count(image), count(saved[0]), count(warm), count(saved[1])


def _changed(raw: _Raw, change: Callable[[str], _Raw]) -> _Raw:
    changed = deepcopy(raw)
    for name, pool in changed["pools"].items():
        pool.update(change(name))
    return changed


def _played(raw: _Raw, trace: Trace, hours: float) -> tuple[Run, _Noting]:
    run = prepare(trace, check(raw, "the fleet").domain(), hours=hours, seed=1)
    passes = _Noting(run.world, run.world.fleet)
    for _ in run.drive(passes):
        passes.reports.clear()
        passes.logged.clear()
    return run, passes


def _usd(run: Run, trace: Trace) -> float:
    return float(measure_run(run.world, run.replay, trace.judged_at)["total_usd"])
