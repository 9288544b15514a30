"""Which of the template's alarms ring, by what the handlers have sent to CloudWatch."""

from packaging_root import ROOT
from support.deployed import NOON, Deployed
from workbench.alarms import read_alarms, ringing, states
from workbench.faces.cloudwatch_face import published

ALARMS, COMPOSITES = read_alarms(ROOT / "template.yaml", "mxnet-ci")


def ringing_in(here: Deployed) -> set[str]:
    """The names without their ending, composites for what they are made of."""
    found = states(ALARMS, COMPOSITES, published(), NOON, here.world.timeline.now)
    parts = {part for composite in COMPOSITES for part in composite.of}
    return {name.removesuffix("Alarm") for name in ringing(found) if name not in parts}
