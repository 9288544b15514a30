"""Which of the template's alarms ring, by what the handlers have sent to CloudWatch."""

from functools import cache

from autoscaler_workbench.report.dashboard.alarms import Alarm, Composite, read_alarms, ringing, states
from autoscaler_workbench.report.dashboard.cloudformation import FULL
from packaging_root import ROOT
from support.deployed import NOON, Deployed


def ringing_in(here: Deployed, **parameters: str) -> set[str]:
    """The names without their ending, composites for what they are made of; ``parameters`` of the stack, where every metric is sent."""
    alarms, composites = _alarms(here.world.fleet.name, **{**FULL, **parameters})
    found = states(alarms, composites, here.metrics, NOON, here.world.timeline.now)
    parts = {part for composite in composites for part in composite.of}
    return {name.removesuffix("Alarm") for name in ringing(found) if name not in parts}


@cache
def _alarms(fleet: str, **parameters: str) -> tuple[list[Alarm], list[Composite]]:
    return read_alarms(ROOT / "template.yaml", fleet, **parameters)
