"""Rivals that stop instances and start them again: ours against the best of all, where a disk has its price."""

from collections.abc import Iterator

from autoscaler.config import FleetSettings, check, load_settings
from autoscaler_workbench.experiment.experiment import EVERY_POLICY
from autoscaler_workbench.simulate.fleets import EXAMPLE_FLEET, fleet_for
from autoscaler_workbench.simulate.traces import MXNET, load_trace
from benchmarks.against_rivals import WARM_BOUND, Load, against_rivals, in_some_worlds
from benchmarks.figures import Figures

_WEEK_HOURS, _MXNET_HOURS = 168.0, 113.0
_USD_PER_GIB_MONTH = 0.08  # gp3 in us-east-1


def measure() -> Iterator[Figures]:
    """Play the carried weeks, each from nothing, by every policy."""
    loads = [
        Load(name="MXNet", trace=load_trace(MXNET, hours=_MXNET_HOURS), fleet=_priced(load_settings(EXAMPLE_FLEET)), hours=_MXNET_HOURS)
    ]
    for name in ("linkerd_gha", "mxnet_jenkins"):
        trace = load_trace(MXNET.parent / f"{name}.csv.gz", hours=_WEEK_HOURS)
        loads.append(Load(name=name, trace=trace, fleet=_priced(fleet_for(trace)), hours=_WEEK_HOURS))
    yield against_rivals(
        "Rivals with stopped instances",
        "The carried weeks, each from nothing, among them rivals that stop instances and start them again; a disk costs "
        f"${_USD_PER_GIB_MONTH:.2f} a GiB and month while its instance is stopped",
        in_some_worlds(loads),
        EVERY_POLICY,
        WARM_BOUND,
    )


def _priced(fleet: FleetSettings) -> FleetSettings:
    """A fleet whose disks cost something."""
    raw = fleet.model_dump(mode="json", exclude_unset=True)
    raw["defaults"] = raw.get("defaults", {}) | {"volume_usd_per_gib_month": _USD_PER_GIB_MONTH}
    return check(raw, "a fleet whose disks cost something")
